//! The node's name server: what it was told is answered with addresses, everything else does not
//! exist. Every query is answered at once, because a resolver that waits costs a pod seconds.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use simple_dns::rdata::{A, RData};
use simple_dns::{CLASS, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

use crate::shares::{Place, Shares};

/// Short: a service's addresses change when its pods do.
const TTL_SECONDS: u32 = 5;

/// Without extensions a longer answer must be asked for again over TCP.
const UDP_BYTES_MAX: usize = 512;

/// A connection that asks nothing for this long is closed.
const TCP_IDLE: Duration = Duration::from_secs(10);

/// A connection is closed after this long, whatever it asks: a resolver opens another one.
const TCP_TIME_MAX: Duration = Duration::from_secs(30);

/// Connections at once, in all and of one pod; further ones are closed. Each has a thread.
const TCP_COUNT_MAX: usize = 64;
const TCP_POD_COUNT_MAX: usize = 8;

/// The pause after a failure that may last, such as a want of file descriptors.
const FAILURE_PAUSE: Duration = Duration::from_millis(50);

/// The names that exist, shared between those who tell and those who answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    table: Arc<RwLock<BTreeMap<String, Vec<Ipv4Addr>>>>,
}

impl Names {
    /// Replaces the whole table.
    pub(crate) fn set(&self, names: Vec<(String, Vec<Ipv4Addr>)>) {
        let table = names
            .into_iter()
            .map(|(name, addresses)| (folded(&name), addresses))
            .collect();
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = table;
    }

    fn find(&self, name: &str) -> Option<Vec<Ipv4Addr>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.get(&folded(name)).cloned()
    }
}

fn folded(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Binds the name server's sockets and answers on threads of its own.
pub(crate) fn serve(at: Ipv4Addr, names: &Names) -> io::Result<()> {
    let address = SocketAddrV4::new(at, 53);
    let datagrams = UdpSocket::bind(address)?;
    let streams = TcpListener::bind(address)?;
    let table = names.clone();
    thread::Builder::new()
        .name("dns-udp".to_owned())
        .spawn(move || answer_datagrams(&datagrams, &table))?;
    let table = names.clone();
    thread::Builder::new()
        .name("dns-tcp".to_owned())
        .spawn(move || accept_streams(&streams, &table))?;
    Ok(())
}

fn answer_datagrams(socket: &UdpSocket, names: &Names) {
    let mut buffer = [0; 4096];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                let query = &buffer[..length];
                if let Some(reply) = or_nothing(|| answer(query, names, UDP_BYTES_MAX)) {
                    let _ = socket.send_to(&reply, from);
                }
            }
            // A client that is gone shows as an error of the next receive; it is not ours.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => thread::sleep(FAILURE_PAUSE),
        }
    }
}

/// What a packet is answered with. One that makes a reader panic is answered with nothing: the thread
/// goes on, or no pod could look up a name any more.
fn or_nothing(answer: impl FnOnce() -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_default()
}

fn accept_streams(listener: &TcpListener, names: &Names) {
    let shares = Shares::new(TCP_COUNT_MAX, TCP_POD_COUNT_MAX);
    loop {
        let Ok((stream, peer)) = listener.accept() else {
            thread::sleep(FAILURE_PAUSE);
            continue;
        };
        if let Some(place) = shares.take(peer.ip()) {
            start_stream(stream, place, names.clone());
        }
    }
}

fn start_stream(stream: TcpStream, place: Place, names: Names) {
    // Without a thread the connection closes, and the resolver asks again.
    let _ = thread::Builder::new()
        .name("dns-stream".to_owned())
        .spawn(move || {
            let _ = answer_stream(stream, &names, Instant::now() + TCP_TIME_MAX);
            drop(place);
        });
}

fn answer_stream(mut stream: TcpStream, names: &Names, until: Instant) -> io::Result<()> {
    stream.set_write_timeout(Some(TCP_IDLE))?;
    loop {
        let mut length = [0; 2];
        read_whole(&mut stream, &mut length, until)?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        read_whole(&mut stream, &mut query, until)?;
        let Some(reply) = answer(&query, names, usize::from(u16::MAX)) else {
            return Ok(());
        };
        let length = u16::try_from(reply.len()).map_err(io::Error::other)?;
        stream.write_all(&[&length.to_be_bytes(), reply.as_slice()].concat())?;
    }
}

/// Fills the buffer before this instant: a client that sends one byte now and then does not hold a
/// thread for longer.
fn read_whole(stream: &mut TcpStream, mut buffer: &mut [u8], until: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left.min(TCP_IDLE)))?;
        match stream.read(buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => buffer = &mut buffer[length..],
        }
    }
    Ok(())
}

/// The answer to a query; `None` for what is none.
fn answer(query: &[u8], names: &Names, bytes_max: usize) -> Option<Vec<u8>> {
    let Ok(query) = Packet::parse(query) else {
        return malformed(query);
    };
    if query.has_flags(PacketFlag::RESPONSE) {
        return None;
    }
    let reply = reply_to(&query, names);
    let bytes = reply.build_bytes_vec_compressed().ok()?;
    if bytes.len() <= bytes_max {
        return Some(bytes);
    }
    let mut short = reply;
    short.answers.clear();
    short.set_flags(PacketFlag::TRUNCATION);
    short.build_bytes_vec_compressed().ok()
}

fn reply_to<'a>(query: &Packet<'a>, names: &Names) -> Packet<'a> {
    let mut reply = Packet::new_reply(query.id());
    reply.set_flags(PacketFlag::AUTHORITATIVE_ANSWER | PacketFlag::RECURSION_AVAILABLE);
    if query.has_flags(PacketFlag::RECURSION_DESIRED) {
        reply.set_flags(PacketFlag::RECURSION_DESIRED);
    }
    let Some(question) = query.questions.first() else {
        *reply.rcode_mut() = RCODE::FormatError;
        return reply;
    };
    reply.questions.push(question.clone());
    let Some(addresses) = names.find(&question.qname.to_string()) else {
        *reply.rcode_mut() = RCODE::NameError;
        return reply;
    };
    // A name that exists has no IPv6 address and nothing else: an empty answer, not an error.
    if matches!(question.qtype, QTYPE::TYPE(TYPE::A) | QTYPE::ANY) {
        for address in addresses {
            let data = RData::A(A {
                address: address.to_bits(),
            });
            let name = question.qname.clone();
            let record = ResourceRecord::new(name, CLASS::IN, TTL_SECONDS, data);
            reply.answers.push(record);
        }
    }
    reply
}

fn malformed(query: &[u8]) -> Option<Vec<u8>> {
    let id = u16::from_be_bytes([*query.first()?, *query.get(1)?]);
    let mut reply = Packet::new_reply(id);
    *reply.rcode_mut() = RCODE::FormatError;
    reply.build_bytes_vec().ok()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use simple_dns::{Name, QCLASS, Question};

    use super::*;

    fn ask(names: &Names, name: &str, kind: TYPE, bytes_max: usize) -> (RCODE, usize, bool) {
        let mut query = Packet::new_query(7);
        let name = Name::new(name).unwrap();
        let question = Question::new(name, kind.into(), QCLASS::CLASS(CLASS::IN), false);
        query.questions.push(question);
        let bytes = answer(&query.build_bytes_vec().unwrap(), names, bytes_max).unwrap();
        let reply = Packet::parse(&bytes).unwrap();
        assert_eq!(reply.id(), 7);
        let is_short = reply.has_flags(PacketFlag::TRUNCATION);
        (reply.rcode(), reply.answers.len(), is_short)
    }

    #[test]
    fn known_names_have_addresses_and_unknown_ones_do_not_exist() {
        let names = Names::default();
        let two = vec![Ipv4Addr::new(10, 88, 0, 2), Ipv4Addr::new(10, 88, 0, 3)];
        names.set(vec![("Head.default.svc.cluster.local.".to_owned(), two)]);
        let name = "head.DEFAULT.svc.cluster.local";
        assert_eq!(ask(&names, name, TYPE::A, 512), (RCODE::NoError, 2, false));
        assert_eq!(
            ask(&names, name, TYPE::AAAA, 512),
            (RCODE::NoError, 0, false)
        );
        let other = "other.default.svc.cluster.local";
        assert_eq!(
            ask(&names, other, TYPE::A, 512),
            (RCODE::NameError, 0, false)
        );
    }

    #[test]
    fn a_long_answer_is_asked_for_again_over_tcp() {
        let names = Names::default();
        let many = (2..102)
            .map(|last| Ipv4Addr::new(10, 88, 0, last))
            .collect();
        names.set(vec![("many".to_owned(), many)]);
        assert_eq!(ask(&names, "many", TYPE::A, 512), (RCODE::NoError, 0, true));
        assert_eq!(
            ask(&names, "many", TYPE::A, 65535),
            (RCODE::NoError, 100, false)
        );
    }

    #[test]
    fn a_packet_that_makes_the_reader_panic_is_answered_with_nothing() {
        assert_eq!(
            or_nothing(|| panic!("this panic is part of the test")),
            None
        );
        assert_eq!(or_nothing(|| Some(vec![1])), Some(vec![1]));
    }

    #[test]
    fn a_stream_whose_time_is_over_is_closed() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let ended = read_whole(&mut stream, &mut [0; 2], Instant::now()).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn one_client_gets_its_share_of_streams_and_another_still_gets_an_answer() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let names = Names::default();
        names.set(vec![("head".to_owned(), vec![Ipv4Addr::new(10, 88, 0, 2)])]);
        let shares = Shares::new(TCP_COUNT_MAX, TCP_POD_COUNT_MAX);
        let other: IpAddr = Ipv4Addr::new(10, 88, 0, 9).into();
        let greedy: Vec<_> = std::iter::repeat_with(|| shares.take(other))
            .take(5_000)
            .flatten()
            .collect();
        assert_eq!(greedy.len(), TCP_POD_COUNT_MAX);
        let mut client = TcpStream::connect(at).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        let place = shares.take(peer.ip()).expect("another client has a share");
        start_stream(stream, place, names);
        client.set_read_timeout(Some(TCP_IDLE)).unwrap();
        client.write_all(&[0, 3, 1, 2, 3]).unwrap();
        let mut length = [0; 2];
        client.read_exact(&mut length).expect("an answer in time");
        assert!(u16::from_be_bytes(length) > 0);
    }

    #[test]
    fn rubbish_is_refused_at_once() {
        let names = Names::default();
        assert!(answer(&[1, 2, 3], &names, 512).is_some());
        assert!(answer(&[], &names, 512).is_none());
    }
}
