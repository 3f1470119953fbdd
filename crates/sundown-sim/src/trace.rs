//! What happened, as a hash that two runs must share, and as lines when somebody wants to read it.

/// The trace of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    hash: u64,
    steps: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// Keeps the lines from now on.
    pub(crate) fn keep(&mut self) {
        self.lines.get_or_insert_default();
    }

    pub(crate) fn note(&mut self, line: &str) {
        self.steps += 1;
        // FNV-1a: equality of runs is all that is asked of it.
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if let Some(lines) = &mut self.lines {
            lines.push(line.to_owned());
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    pub(crate) fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
