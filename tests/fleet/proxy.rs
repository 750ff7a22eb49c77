//! A TCP proxy before the server: it can hold what is sent in one direction or in both, break connections off, and keep
//! what has passed. What it holds passes later, as TCP has it after a network was away.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Which direction is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// What the host sends.
    ToServer,
    /// What the server sends.
    FromServer,
    /// Both.
    Both,
}

#[derive(Default)]
struct Shared {
    /// Whether each direction is held: to the server, and from it.
    held: Mutex<[bool; 2]>,
    changed: Condvar,
    sockets: Mutex<Vec<TcpStream>>,
    passed: Option<Mutex<Vec<u8>>>,
    has_ended: AtomicBool,
}

/// It ends when it is dropped.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy before the server of that port.
    pub(crate) fn before(server: u16) -> Proxy {
        Proxy::with(server, Shared::default())
    }

    /// The same, which keeps all bytes that pass, in both directions.
    pub(crate) fn recording_before(server: u16) -> Proxy {
        Proxy::with(server, Shared { passed: Some(Mutex::default()), ..Shared::default() })
    }

    fn with(server: u16, shared: Shared) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(shared);
        let accepts = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || {
            for from in listener.incoming().map_while(Result::ok) {
                if accepts.has_ended.load(Ordering::SeqCst) {
                    return;
                }
                // Without a server behind it a connection ends at once.
                if let Ok(to) = TcpStream::connect(("127.0.0.1", server)) {
                    accepts.join(&from, &to);
                }
            }
        });
        Proxy { port, shared, accepting: Some(accepting) }
    }

    /// Holds what is sent that way from now on.
    pub(crate) fn hold(&self, way: Way) {
        self.shared.set_held([way != Way::FromServer, way != Way::ToServer]);
    }

    /// Lets all of it pass again, what was held too.
    pub(crate) fn let_pass(&self) {
        self.shared.set_held([false, false]);
    }

    /// Breaks all connections off; what is held of them is lost.
    pub(crate) fn break_off(&self) {
        self.shared.break_off();
    }

    /// The bytes that have passed.
    pub(crate) fn passed(&self) -> Vec<u8> {
        self.shared.passed.as_ref().expect("it records").lock().expect("no panic").clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::SeqCst);
        self.let_pass();
        self.break_off();
        // It wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Shared {
    fn set_held(&self, held: [bool; 2]) {
        *self.held.lock().expect("no panic") = held;
        self.changed.notify_all();
    }

    fn break_off(&self) {
        for socket in self.sockets.lock().expect("no panic").drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Copies between both from now on.
    fn join(self: &Arc<Self>, host: &TcpStream, server: &TcpStream) {
        let clone = |socket: &TcpStream| socket.try_clone().expect("a descriptor");
        self.sockets.lock().expect("no panic").extend([clone(host), clone(server)]);
        for (way, from, to) in [(0, host, server), (1, server, host)] {
            let (shared, from, to) = (Arc::clone(self), clone(from), clone(to));
            std::thread::spawn(move || shared.copy(way, from, to));
        }
    }

    fn copy(&self, way: usize, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let held = self.held.lock().expect("no panic");
            drop(self.changed.wait_while(held, |held| held[way]).expect("no panic"));
            if let Some(passed) = &self.passed {
                passed.lock().expect("no panic").extend_from_slice(&bytes[..count]);
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
