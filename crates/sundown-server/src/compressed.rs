//! The one long document that every kubectl asks for, `/openapi/v2`, goes out compressed if the client
//! takes that: made when it is first asked for, and kept as it was sent.
//!
//! Whether what is kept is still right, and whether the caller may have it, is the API's to say: it is
//! asked with the tags of what is kept, and answers 304 without making the document.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;
use sundown_api::{Request, Response};

const PATH: &str = "/openapi/v2";

/// One in JSON and one in protobuf.
const KEPT_MAX: usize = 2;

/// Longer ones are made each time. Two hundred definitions of the size of Ray's stay below.
const KEPT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What is shorter goes out as it is, as upstream (gziphandler).
const BODY_BYTES_MIN: usize = 1400;

/// What zlib calls the default: the better ones take twice the time for a few hundredths.
const LEVEL: u8 = 6;

/// The documents that were sent last.
#[derive(Debug, Default)]
pub(crate) struct Compressed(Mutex<VecDeque<Kept>>);

#[derive(Debug, Clone)]
struct Kept {
    tag: String,
    body: Arc<[u8]>,
}

/// How a client asked for the document.
#[derive(Debug)]
pub(crate) struct Asked {
    takes_gzip: bool,
    /// The tags that the client itself has.
    tags: String,
    /// What the API was asked about for the client. It is held until the answer is there: others may come to be
    /// kept in its place meanwhile.
    offered: Vec<Kept>,
}

impl Compressed {
    /// Puts the tags of what is kept to those of the client; None for all other requests.
    pub(crate) fn ask(&self, headers: &HeaderMap, request: &mut Request) -> Option<Asked> {
        if request.path.trim_end_matches('/') != PATH {
            return None;
        }
        let mut asked = Asked {
            takes_gzip: takes_gzip(headers),
            tags: request.if_none_match.clone().unwrap_or_default(),
            offered: Vec::new(),
        };
        if asked.takes_gzip {
            let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            asked.offered = kept.iter().cloned().collect();
            let own = asked.offered.iter().map(|it| it.tag.as_str());
            let tags: Vec<&str> = own.chain([asked.tags.as_str()]).collect();
            request.if_none_match = Some(tags.join(", "));
        }
        Some(asked)
    }

    /// Makes of the API's answer what the client gets.
    pub(crate) fn complete(&self, asked: &Asked, response: &mut Response) {
        for (name, value) in &mut response.headers {
            if *name == "vary" {
                value.push_str(", Accept-Encoding");
            }
        }
        let tag = response.headers.iter().find(|(name, _)| *name == "etag");
        let Some((_, tag)) = tag.cloned() else {
            return;
        };
        if response.code == 304 && !asked.tags.contains(&tag) {
            let Some(offered) = asked.offered.iter().find(|it| it.tag == tag) else {
                return;
            };
            response.code = 200;
            response.body = offered.body.to_vec();
        } else if asked.takes_gzip && response.code == 200 && response.body.len() >= BODY_BYTES_MIN
        {
            response.body = gzip(&response.body);
            self.keep(tag, &response.body);
        } else {
            return;
        }
        let encoding = ("content-encoding", "gzip".to_owned());
        response.headers.push(encoding);
    }

    fn keep(&self, tag: String, body: &[u8]) {
        if body.len() > KEPT_BYTES_MAX {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Two clients may have asked for the same at once.
        kept.retain(|it| it.tag != tag);
        kept.truncate(KEPT_MAX - 1);
        let body = body.into();
        kept.push_front(Kept { tag, body });
    }
}

/// Whether Accept-Encoding names gzip, and not to forbid it.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter();
    let mut codings = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
        is_gzip && quality.unwrap_or(1.0_f32) > 0.0
    })
}

/// RFC 1952: a head, the deflated bytes, their checksum and their length.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let deflated = miniz_oxide::deflate::compress_to_vec(bytes, LEVEL);
    let length = bytes.len() as u64;
    let tail = [&crc32(bytes).to_le_bytes(), &length.to_le_bytes()[..4]].concat();
    [&HEAD, deflated.as_slice(), &tail].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = crc32_table();
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        TABLE[usize::from(low ^ byte)] ^ (crc >> 8)
    })
}

const fn crc32_table() -> [u32; 256] {
    let mut table = [0; 256];
    let (mut index, mut start) = (0, 0_u32);
    while index < table.len() {
        let (mut crc, mut bit) = (start, 0);
        while bit < 8 {
            let is_odd = crc & 1 == 1;
            crc >>= 1;
            if is_odd {
                crc ^= 0xedb8_8320;
            }
            bit += 1;
        }
        table[index] = crc;
        index += 1;
        start += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn gzip_is_for_clients_that_name_it() {
        let check = |line: &'static str, expect: bool| {
            let mut headers = HeaderMap::new();
            headers.append(ACCEPT_ENCODING, HeaderValue::from_static(line));
            assert_eq!(takes_gzip(&headers), expect, "{line}");
        };
        check("gzip", true);
        check("br, gzip;q=0.5", true);
        check("GZIP", true);
        check("gzip;q=0", false);
        check("*", false);
        check("identity", false);
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn what_the_api_was_asked_about_is_there_for_its_answer() {
        let kept = Compressed::default();
        kept.keep("a".to_owned(), b"body");
        let offered = kept.0.lock().unwrap().iter().cloned().collect();
        let asked = Asked {
            takes_gzip: true,
            tags: String::new(),
            offered,
        };
        kept.keep("b".to_owned(), b"other");
        kept.keep("c".to_owned(), b"another");
        let mut response = Response {
            code: 304,
            content_type: "application/json",
            warnings: Vec::new(),
            headers: vec![("etag", "a".to_owned())],
            body: Vec::new(),
        };
        kept.complete(&asked, &mut response);
        assert_eq!((response.code, &*response.body), (200, &b"body"[..]));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let kept = Compressed::default();
        for tag in ["a", "b", "b", "c"] {
            kept.keep(tag.to_owned(), tag.as_bytes());
        }
        kept.keep("long".to_owned(), &vec![0; KEPT_BYTES_MAX + 1]);
        let left = kept.0.lock().unwrap();
        let is_there = ["a", "b", "c", "long"].map(|tag| left.iter().any(|it| it.tag == tag));
        assert_eq!(is_there, [false, true, true, false]);
    }
}
