//! How much may be written before it is too much: a few lines of a manifest can name one large text
//! many times, so that what they stand for is more than there is memory.

/// What may still be written.
#[derive(Debug, Clone)]
pub struct Room {
    bytes_left: usize,
}

/// It does not fit any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl Room {
    /// Room for so many bytes.
    pub fn of(bytes_max: usize) -> Self {
        let bytes_left = bytes_max;
        Self { bytes_left }
    }

    /// Takes room for so many bytes.
    ///
    /// Errors: less than that is left; nothing is taken then.
    pub fn take(&mut self, bytes: usize) -> Result<(), Full> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(Full)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Full, Room};

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let mut room = Room::of(3);
        assert_eq!(room.take(2), Ok(()));
        assert_eq!(room.take(2), Err(Full));
        assert_eq!(room.take(1), Ok(()));
        assert_eq!(room.take(1), Err(Full));
    }
}
