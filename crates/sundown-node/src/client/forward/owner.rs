//! Whose a connection of the loopback is. TCP does not tell; the kernel's table of sockets does.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use tokio::net::TcpStream;

/// The tables: a socket of IPv6 connects to addresses of IPv4, too.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Of a table; a hundred thousand sockets. What comes after is not looked at.
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// The table is not read in one moment, so that a row may be missed while others come and go.
const LOOKS_MAX: usize = 3;

/// Also shown for sockets that no process holds.
const ROOT: u32 = 0;

/// Whose a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    uid: u32,
    inode: u64,
}

/// The user whose connection this is; None: not known.
pub(super) async fn of(outside: &TcpStream) -> Option<u32> {
    let (SocketAddr::V4(from), SocketAddr::V4(to)) =
        (outside.peer_addr().ok()?, outside.local_addr().ok()?)
    else {
        return None;
    };
    for _ in 0..LOOKS_MAX {
        let Some(owner) = look(from, to).await else {
            continue;
        };
        // A row is not read in one moment either: that of a socket which is closed just then may still have an
        // inode and be shown as root's already. The next look has neither.
        let is_sure = owner.uid != ROOT || look(from, to).await == Some(owner);
        return is_sure.then_some(owner.uid);
    }
    None
}

async fn look(from: SocketAddrV4, to: SocketAddrV4) -> Option<Owner> {
    let mut tables = String::new();
    for path in TABLES {
        // Where there is no IPv6 there is no table of it.
        tables.push_str(&read(path).await.unwrap_or_default());
    }
    judge(&tables, from, to)
}

async fn read(path: &'static str) -> std::io::Result<String> {
    let opened = tokio::task::spawn_blocking(move || {
        use std::io::Read as _;
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        file.take(TABLE_BYTES_MAX).read_to_string(&mut text)?;
        std::io::Result::Ok(text)
    });
    opened.await.map_err(std::io::Error::other)?
}

/// The user of the socket that leads from one address to the other, by rows of the kernel's tables.
///
/// Rows without an inode are left out: no process holds such a socket any more, and the kernel shows it as
/// root's. A client that sends a request and closes at once would pass for root.
fn judge(tables: &str, from: SocketAddrV4, to: SocketAddrV4) -> Option<Owner> {
    let (from, to) = (both(from), both(to));
    let mut found = None;
    for row in tables.lines() {
        let Some(row) = Row::read(row) else { continue };
        let is_it = from.iter().any(|it| it == row.local) && to.iter().any(|it| it == row.remote);
        if !is_it || row.owner.inode == 0 {
            continue;
        }
        if found.is_some_and(|owner| owner != row.owner) {
            return None;
        }
        found = Some(row.owner);
    }
    found
}

struct Row<'a> {
    local: &'a str,
    remote: &'a str,
    owner: Owner,
}

impl<'a> Row<'a> {
    /// None: the head of a table, or no row that we know.
    fn read(line: &'a str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let number = fields.next()?;
        number.strip_suffix(':')?.parse::<u64>().ok()?;
        let (local, remote) = (fields.next()?, fields.next()?);
        // State, queues, timer, retransmits; then the user, a timeout, the inode.
        let uid = fields.nth(4)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(Self {
            local,
            remote,
            owner: Owner { uid, inode },
        })
    }
}

/// An address as the two tables write it: words of four bytes as the machine counts them.
fn both(address: SocketAddrV4) -> [String; 2] {
    let word = |octets: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(octets));
    let (ip, port) = (Ipv4Addr::octets(address.ip()), address.port());
    let mapped = [[0; 4], [0; 4], [0, 0, 0xff, 0xff], ip].map(word).concat();
    [
        format!("{}:{port:04X}", word(ip)),
        format!("{mapped}:{port:04X}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    /// A row as the kernel of a machine with small end first writes it.
    fn row(local: &str, remote: &str, state: &str, uid: u32, inode: u32) -> String {
        format!(
            "   7: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 {uid:>5}        0 {inode} 1 0000000000000000 20 4 30 10 -1\n"
        )
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_owner_is_read_from_the_row_of_the_clients_end() {
        let (client, server) = ("0100007F:A002", "0100007F:1F90");
        let mapped = "0000000000000000FFFF00000100007F";
        let (client6, server6) = (format!("{mapped}:A002"), format!("{mapped}:1F90"));
        let cases = [
            ("an empty table", String::new(), None),
            ("its own", row(client, server, "01", 1000, 5), Some(1000)),
            ("root's", row(client, server, "01", 0, 5), Some(0)),
            ("of IPv6", row(&client6, &server6, "01", 7, 5), Some(7)),
            (
                "only our end of it",
                row(server, client, "01", 1000, 5),
                None,
            ),
            (
                "both ends, of two users",
                row(server, client, "01", 0, 4) + &row(client, server, "01", 65534, 5),
                Some(65534),
            ),
            (
                "half closed by its owner",
                row(client, server, "05", 9, 5),
                Some(9),
            ),
            (
                "closed by its owner: shown as root's",
                row(client, server, "04", 0, 0),
                None,
            ),
            ("waits for its time", row(client, server, "06", 0, 0), None),
            (
                "another port",
                row("0100007F:A003", server, "01", 1000, 5),
                None,
            ),
            (
                "another address",
                row("0200007F:A002", server, "01", 1000, 5),
                None,
            ),
            (
                "two that do not agree",
                row(client, server, "01", 1, 5) + &row(client, server, "01", 2, 6),
                None,
            ),
            (
                "cut off",
                row(client, server, "01", 1000, 5)[..60].to_owned(),
                None,
            ),
        ];
        let from = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0xA002);
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0x1F90);
        for (what, table, expect) in cases {
            let found = judge(&format!("{HEAD}{table}"), from, to);
            assert_eq!(found.map(|it| it.uid), expect, "{what}");
        }
    }

    #[tokio::test]
    async fn the_kernel_says_whose_a_connection_is() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let port = at.port();
        for to in [at, format!("[::ffff:127.0.0.1]:{port}").parse().unwrap()] {
            let client = TcpStream::connect(to).await;
            // This machine has no IPv6.
            if client.is_err() && to.is_ipv6() {
                continue;
            }
            let client = client.unwrap();
            let (outside, _) = listener.accept().await.unwrap();
            let own = rustix::process::geteuid().as_raw();
            assert_eq!(of(&outside).await, Some(own), "{to}");
            drop(client);
            // Closed, it belongs to no process, and never to another user. Programs that other tests start may
            // hold it for a moment longer.
            let begun_at = std::time::Instant::now();
            while let Some(uid) = of(&outside).await {
                assert_eq!(uid, own, "{to}");
                let waited = begun_at.elapsed();
                assert!(waited.as_secs() < 60, "{to} is not closed after {waited:?}");
            }
        }
    }
}
