//! The node's name server: what it was told is answered with addresses, everything else does not
//! exist. Every query is answered at once, because a resolver that waits costs a pod seconds.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use simple_dns::rdata::{A, RData};
use simple_dns::{CLASS, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

/// Short: a service's addresses change when its pods do.
const TTL_SECONDS: u32 = 5;

/// Without extensions a longer answer must be asked for again over TCP.
const UDP_BYTES_MAX: usize = 512;

/// A connection that asks nothing for this long is closed.
const TCP_IDLE: Duration = Duration::from_secs(10);

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
        // A client that is gone shows as an error of the next receive; it is not ours.
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        if let Some(reply) = answer(&buffer[..length], names, UDP_BYTES_MAX) {
            let _ = socket.send_to(&reply, from);
        }
    }
}

fn accept_streams(listener: &TcpListener, names: &Names) {
    for stream in listener.incoming().flatten() {
        let names = names.clone();
        // Without a thread the connection closes, and the resolver asks again.
        let _ = thread::Builder::new()
            .name("dns-stream".to_owned())
            .spawn(move || answer_stream(stream, &names));
    }
}

fn answer_stream(mut stream: TcpStream, names: &Names) -> io::Result<()> {
    stream.set_read_timeout(Some(TCP_IDLE))?;
    stream.set_write_timeout(Some(TCP_IDLE))?;
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut query)?;
        let Some(reply) = answer(&query, names, usize::from(u16::MAX)) else {
            return Ok(());
        };
        let length = u16::try_from(reply.len()).map_err(io::Error::other)?;
        stream.write_all(&[&length.to_be_bytes(), reply.as_slice()].concat())?;
    }
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
    fn rubbish_is_refused_at_once() {
        let names = Names::default();
        assert!(answer(&[1, 2, 3], &names, 512).is_some());
        assert!(answer(&[], &names, 512).is_none());
    }
}
