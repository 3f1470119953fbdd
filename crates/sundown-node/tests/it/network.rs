//! Pods, names and the door.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Result, ensure};
use sundown_node::{EgressRules, HttpProbe, Node, ProbeError};
use sundown_testing::{BOUND, within};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::world::{World, a_container, a_pod, block_on, sh};

/// A web server at the port that every pod uses.
const SERVER: &str = "import http.server, socket\n\
class H(http.server.BaseHTTPRequestHandler):\n\
\x20   def do_GET(self):\n\
\x20       self.send_response(200 if self.path == '/ok' else 503)\n\
\x20       self.end_headers()\n\
\x20       self.wfile.write(socket.gethostname().encode())\n\
http.server.HTTPServer(('0.0.0.0', 8000), H).serve_forever()\n";

async fn serve(world: &World, uid: &str, server: &str) -> Result<Ipv4Addr> {
    let state = world
        .run(a_pod(uid), a_container(&["python3", "-c", server]))
        .await?;
    let to = SocketAddrV4::new(state.address, 8000);
    let answers = async {
        let patient = Duration::from_secs(5);
        while world.node.probe_tcp(to, patient).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    within(format!("pod {uid} to serve"), answers).await?;
    Ok(state.address)
}

fn probe(address: Ipv4Addr, path: &str) -> HttpProbe {
    HttpProbe {
        address,
        port: 8000,
        path: path.to_owned(),
        tls: false,
        headers: Vec::new(),
        timeout: BOUND,
    }
}

async fn name(node: &Node, name: &str, address: Ipv4Addr) -> Result<()> {
    let full = format!("{name}.default.svc.cluster.local");
    Ok(node.set_names(vec![(full, vec![address])]).await?)
}

pub(crate) fn pods_talk_by_name_on_the_same_port() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let one = serve(&world, "one", SERVER).await?;
        let two = serve(&world, "two", SERVER).await?;
        ensure!(one != two);
        name(&world.node, "two", two).await?;
        let script = "import socket, urllib.request
for name in ['two', 'two.default', 'two.default.svc.cluster.local', 'localhost', 'one']:
    try: print(name, urllib.request.urlopen('http://%s:8000/ok' % name).read().decode())
    except OSError: print(name, 'refused')
print(socket.gethostbyname('one'))";
        let argv = vec!["python3".to_owned(), "-c".to_owned(), script.to_owned()];
        let found = world.node.exec("one", "main", argv, BOUND, 10000).await?;
        let expected = format!(
            "two two\ntwo.default two\ntwo.default.svc.cluster.local two\nlocalhost one\none one\n{one}\n"
        );
        ensure!(found.output == expected, "{found:?}");
        world.close().await
    })
}

pub(crate) fn names_are_answered_at_once() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let address = Ipv4Addr::new(10, 88, 7, 7);
        name(&world.node, "known", address).await?;
        let script = "import socket, time
def ask(name, family):
    begun = time.time()
    try: answer = socket.getaddrinfo(name, 1, family, socket.SOCK_STREAM)[0][4][0]
    except socket.gaierror as e: answer = e.args[0]
    # A question that is dropped costs the 30 s that the resolver is told to wait.
    print(name, answer, 'at once' if time.time() - begun < 20 else 'late')
ask('known', socket.AF_INET)
ask('known', socket.AF_INET6)
ask('metadata.google.internal', socket.AF_UNSPEC)";
        let mut container = a_container(&["python3", "-c", script]);
        let patient = ("RES_OPTIONS".to_owned(), "timeout:30 attempts:1".to_owned());
        container.env.push(patient);
        world.run(a_pod("asks"), container).await?;
        let (exit, log) = world.finish("asks").await?;
        let lines: Vec<&str> = log.lines().collect();
        ensure!(exit.code == 0 && lines.len() == 3, "{exit:?} {log}");
        ensure!(lines[0] == "known 10.88.7.7 at once", "{log}");
        ensure!(
            lines[1].starts_with("known -") && lines[1].ends_with("at once"),
            "{log}"
        );
        ensure!(lines[2].contains(" -2 at once"), "{log}");
        world.close().await
    })
}

pub(crate) fn what_is_outside_is_refused_not_dropped() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        // Dropped packets would end in the kernel's own "timed out", minutes later.
        let script = "import errno, socket
for to in ['169.254.169.254', '192.0.2.1', '192.0.2.1', '192.0.2.1']:
    try: socket.create_connection((to, 80))
    except OSError as e: print(errno.errorcode[e.errno])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('192.0.2.1', 80))
print(s.getsockname()[0])";
        let state = world
            .run(a_pod("asks"), a_container(&["python3", "-c", script]))
            .await?;
        let (exit, log) = world.finish("asks").await?;
        let own = state.address;
        let expected = format!("{}{own}", "EHOSTUNREACH\n".repeat(4));
        ensure!(exit.code == 0 && log == expected, "{exit:?} {log}");
        world.close().await
    })
}

pub(crate) fn the_host_dials_probes_and_forwards() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let address = serve(&world, "web", SERVER).await?;
        let found = world.node.probe_http(&probe(address, "/ok")).await?;
        ensure!(found.is_success() && found.body == "web", "{found:?}");
        ensure!(
            !world
                .node
                .probe_http(&probe(address, "/no"))
                .await?
                .is_success()
        );
        let mut secure = probe(address, "/ok");
        secure.tls = true;
        let refused = world.node.probe_http(&secure).await;
        ensure!(
            matches!(refused, Err(ProbeError::Connection { .. })),
            "{refused:?}"
        );
        let closed = world
            .node
            .probe_tcp(SocketAddrV4::new(address, 9), Duration::from_secs(5))
            .await;
        ensure!(
            matches!(closed, Err(ProbeError::Connection { .. })),
            "{closed:?}"
        );
        let forward = world
            .node
            .forward(0, SocketAddrV4::new(address, 8000))
            .await?;
        let (at, token) = (forward.local_address(), forward.token().reveal());
        let ask = format!("GET /ok HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n");
        let known = exchange(at, &format!("{ask}Authorization: Bearer {token}\r\n\r\n")).await?;
        ensure!(known.starts_with("HTTP/1.1 200 "), "{known}");
        ensure!(known.contains("\r\nweb\r\n"), "{known}");
        let unknown = exchange(at, &format!("{ask}\r\n")).await?;
        ensure!(unknown.starts_with("HTTP/1.1 403 "), "{unknown}");
        world.close().await
    })
}

async fn exchange(at: SocketAddr, request: &str) -> Result<String> {
    let first = request.lines().next().unwrap_or_default();
    within(format!("the whole answer of {at} to {first}"), async {
        let mut stream = tokio::net::TcpStream::connect(at).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        anyhow::Ok(text)
    })
    .await?
}

/// The next line of a connection, with its end.
async fn next_line(stream: &mut BufReader<tokio::net::TcpStream>, what: &str) -> Result<String> {
    let mut line = String::new();
    within(what, stream.read_line(&mut line)).await??;
    Ok(line)
}

/// A server that says what reached it: a line for each request, and what comes after an upgrade, in capitals.
const TELLING: &str = "import socketserver
class H(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().decode().strip()
        heads = {}
        while (head := self.rfile.readline().decode().strip()):
            name, value = head.split(': ', 1)
            heads[name.lower()] = value
        if 'upgrade' in heads:
            self.wfile.write(b'HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: shout\\r\\n\\r\\n')
            while (said := self.rfile.readline()):
                self.wfile.write(said.upper())
            return
        size = int(heads.get('content-length', 0))
        if heads.get('transfer-encoding') == 'chunked':
            while (chunk := int(self.rfile.readline(), 16)):
                size += len(self.rfile.read(chunk))
                self.rfile.readline()
            self.rfile.readline()
        else:
            self.rfile.read(size)
        told = f'{line} {size} {heads.get(\"cookie\")} {heads.get(\"authorization\")} {heads.get(\"connection\")}'.encode()
        self.wfile.write(b'HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nSet-Cookie: own=1\\r\\nSet-Cookie: sundown-9=x\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(told) + told)
class S(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
S(('0.0.0.0', 8000), H).serve_forever()
";

/// Of one connection every request is judged, wherever it hides; what is admitted arrives whole, without
/// what proved it; other protocols pass.
pub(crate) fn a_forward_judges_every_request_of_a_connection() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let address = serve(&world, "tells", TELLING).await?;
        let to = SocketAddrV4::new(address, 8000);
        let forward = world.node.forward(0, to).await?;
        let (at, token) = (forward.local_address(), forward.token().reveal());
        let proof = format!(
            "Host: {at}\r\nCookie: a=b; sundown-{}={token}\r\n",
            at.port()
        );

        // The second request of the connection knows nothing.
        let pair = format!(
            "POST /one HTTP/1.1\r\n{proof}Connection: keep-alive, x\r\nX: y\r\nContent-Length: 3\r\n\r\nabc\
             GET /two HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"
        );
        let found = exchange(at, &pair).await?;
        ensure!(
            found.contains("POST /one HTTP/1.1 3 a=b None None"),
            "{found}"
        );
        ensure!(found.contains("HTTP/1.1 403 "), "{found}");
        ensure!(!found.contains("/two HTTP"), "{found}");
        ensure!(found.contains("set-cookie: own=1\r\n"), "{found}");
        ensure!(!found.contains("sundown-9"), "{found}");

        let worker = format!("GET /sw.js HTTP/1.1\r\n{proof}Service-Worker: script\r\n\r\n");
        let found = exchange(at, &worker).await?;
        ensure!(found.starts_with("HTTP/1.1 403 "), "{found}");

        // What one side could take for a second request is the body of the first for both.
        let smuggled = format!(
            "POST /one HTTP/1.1\r\n{proof}Connection: close\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n\
             1d\r\nGET /evil HTTP/1.1\r\nX: abcdef\r\n0\r\n\r\n"
        );
        let found = exchange(at, &smuggled).await?;
        ensure!(found.contains("POST /one HTTP/1.1 29 "), "{found}");
        ensure!(!found.contains("/evil"), "{found}");

        let large = "x".repeat(4 << 20);
        let upload = format!(
            "POST /large HTTP/1.1\r\n{proof}Connection: close\r\nContent-Length: {}\r\n\r\n{large}",
            large.len()
        );
        let found = exchange(at, &upload).await?;
        ensure!(found.contains("POST /large HTTP/1.1 4194304 "), "{found}");

        let long = format!("GET / HTTP/1.1\r\n{proof}X: {}\r\n\r\n", "x".repeat(70_000));
        let found = exchange(at, &long).await?;
        ensure!(found.starts_with("HTTP/1.1 431 "), "{found}");

        let upgrade = "Connection: Upgrade\r\nUpgrade: shout\r\n";
        let shout = format!("GET /tail HTTP/1.1\r\n{proof}{upgrade}\r\n");
        let mut stream = BufReader::new(tokio::net::TcpStream::connect(at).await?);
        stream.write_all(shout.as_bytes()).await?;
        let mut line = next_line(&mut stream, "the answer to an upgrade").await?;
        ensure!(line.starts_with("HTTP/1.1 101 "), "{line}");
        while !line.trim().is_empty() {
            line = next_line(&mut stream, "the end of its head").await?;
        }
        stream.write_all(b"hello\n").await?;
        let line = next_line(&mut stream, "an echo behind the upgrade").await?;
        ensure!(line == "HELLO\n", "{line}");
        let foreign =
            format!("GET /tail HTTP/1.1\r\n{proof}{upgrade}Origin: http://evil.example\r\n\r\n");
        let found = exchange(at, &foreign).await?;
        ensure!(found.starts_with("HTTP/1.1 403 "), "{found}");
        drop(stream);
        world.close().await
    })
}

pub(crate) fn pods_reach_the_door() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let at = SocketAddrV4::new(world.node.bridge(), 6443);
        let mut door = world.node.listen_in_node(at).await?;
        ensure!(
            world.node.listen_in_node(at).await.is_err(),
            "the address is taken"
        );
        let script = format!(
            "import socket; s = socket.create_connection(('{}', 6443)); s.sendall(b'hello'); print(s.recv(100).decode())",
            at.ip()
        );
        world
            .run(a_pod("inside"), a_container(&["python3", "-c", &script]))
            .await?;
        let mut stream = within("a pod at the door", door.accept()).await??;
        let mut text = [0; 5];
        stream.read_exact(&mut text).await?;
        ensure!(&text == b"hello");
        stream.write_all(b"welcome").await?;
        drop(stream);
        let (exit, log) = world.finish("inside").await?;
        ensure!(exit.code == 0 && log == "welcome", "{exit:?} {log}");
        drop(door);
        world.close().await
    })
}

pub(crate) fn addresses_are_kept_and_checked() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let wanted = Ipv4Addr::new(10, 88, 9, 9);
        let mut pod = a_pod("fixed");
        pod.address = Some(wanted);
        ensure!(world.node.create_pod(pod.clone()).await?.address == wanted);
        "other".clone_into(&mut pod.uid);
        ensure!(world.node.create_pod(pod.clone()).await.is_err(), "taken");
        pod.address = Some(Ipv4Addr::new(192, 168, 0, 1));
        ensure!(world.node.create_pod(pod.clone()).await.is_err(), "outside");
        world.node.remove_pod("fixed").await?;
        pod.address = Some(wanted);
        ensure!(world.node.create_pod(pod).await?.address == wanted);
        let (_, log) = world
            .script(
                "shows",
                "hostname -i 2>/dev/null || grep shows /etc/hosts | cut -f1",
            )
            .await?;
        ensure!(log.starts_with("10.88."), "{log}");
        world.node.start_container("other", sh("true")).await?;
        world.close().await
    })
}

pub(crate) fn the_way_out_is_a_proxy() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let outside = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = outside.local_addr()?.port();
        let bridge = world.node.bridge();
        let rules = EgressRules {
            loopback: std::iter::once(format!("127.0.0.1:{port}")).collect(),
        };
        let open = SocketAddrV4::new(bridge, 3128);
        let open = world.node.offer_egress(open, rules).await?;
        let strict = SocketAddrV4::new(bridge, 3129);
        let _strict = world
            .node
            .offer_egress(strict, EgressRules::default())
            .await?;
        let script = format!(
            "import socket
def ask(proxy, line):
    s = socket.create_connection(('{bridge}', proxy))
    s.sendall((line + '\\r\\nHost: x\\r\\n\\r\\n').encode())
    first = s.recv(1000).decode().splitlines()[0]
    print(first)
    return s
ask(3129, 'CONNECT 127.0.0.1:{port} HTTP/1.1')
ask(3128, 'GET http://127.0.0.1:{port}/ HTTP/1.1')
s = ask(3128, 'CONNECT 127.0.0.1:{port} HTTP/1.1')
s.sendall(b'hello')
print(s.recv(100).decode())"
        );
        world
            .run(a_pod("leaves"), a_container(&["python3", "-c", &script]))
            .await?;
        let accepted = within("a pod that comes out", outside.accept()).await?;
        let (mut stream, _) = accepted?;
        let mut text = [0; 5];
        stream.read_exact(&mut text).await?;
        ensure!(&text == b"hello");
        stream.write_all(b"welcome").await?;
        let (exit, log) = world.finish("leaves").await?;
        let expected = "HTTP/1.1 403 Forbidden\nHTTP/1.1 405 Method Not Allowed\n\
            HTTP/1.1 200 Connection established\nwelcome";
        ensure!(exit.code == 0 && log == expected, "{exit:?} {log}");
        ensure!(open.address().port() == 3128);
        world.close().await
    })
}
