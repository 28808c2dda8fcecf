//! Tests of the unwind cache.

use super::*;

/// A stack, and unwinds that read return addresses at words 2 and 5 and a base pointer at word 1.
struct Walked {
    stack: Vec<u64>,
    known: UnwindCache,
    reads: Reads,
}

impl Walked {
    fn new() -> Self {
        Self {
            stack: vec![0, 0xba5e, 0x1001, 0, 0, 0x2001, 0, 0],
            known: UnwindCache::new(),
            reads: Reads::new(),
        }
    }

    fn place(&self, word: usize) -> u64 {
        self.stack.as_ptr().wrapping_add(word) as u64
    }

    fn start(&self) -> Registers {
        Registers {
            instruction: 0x500,
            stack: self.place(0),
            base: 0xf00,
        }
    }

    fn keep(&mut self) -> StackHash {
        self.reads.begin();
        for word in [2, 5] {
            self.reads.frame(self.place(word), self.stack[word]);
        }
        self.reads.other(self.place(1), self.stack[1]);
        let hash = StackHash::of(&[self.stack[2], self.stack[5]]);
        self.known.keep(self.start(), &self.reads, hash);
        hash
    }

    fn find(&mut self, start: Registers) -> Option<StackHash> {
        let (mut frames, mut places) = ([0; 4], [0; 4]);
        let mut output = FrameBuffer {
            frames: &mut frames,
            places: &mut places,
            depth: 0,
        };
        // SAFETY: the words exist, and nobody writes them meanwhile.
        let hash = unsafe { self.known.find(&start, &mut output) }?;
        assert_eq!(output.depth, 2);
        assert_eq!(frames, [self.stack[2], self.stack[5], 0, 0]);
        assert_eq!(places, [self.place(3), self.place(6), 0, 0]);
        Some(hash)
    }
}

#[test]
fn a_walk_is_known_by_its_words() {
    let mut walked = Walked::new();
    assert_eq!(walked.find(walked.start()), None);
    let hash = walked.keep();
    for _ in 0..3 {
        assert_eq!(walked.find(walked.start()), Some(hash));
    }
}

#[test]
fn any_other_word_is_another_walk_and_words_that_nobody_read_are_not() {
    for word in 0..8 {
        let mut walked = Walked::new();
        let hash = walked.keep();
        walked.stack[word] += 1;
        let is_read = [1, 2, 5].contains(&word);
        assert_eq!(
            walked.find(walked.start()),
            (!is_read).then_some(hash),
            "word {word}"
        );
    }
}

#[test]
fn another_start_is_another_walk() {
    let mut walked = Walked::new();
    let hash = walked.keep();
    let start = walked.start();
    for other in [
        Registers {
            instruction: 0x501,
            ..start
        },
        Registers {
            stack: walked.place(1),
            ..start
        },
    ] {
        assert_eq!(walked.find(other), None);
    }
    // The base pointer counts if it was used.
    let other = Registers { base: 0xf01, ..start };
    assert_eq!(walked.find(other), Some(hash));
    walked.known.clear();
    walked.reads.begin();
    walked.reads.first_base();
    walked.known.keep(start, &walked.reads, hash);
    let mut nothing = FrameBuffer {
        frames: &mut [],
        places: &mut [],
        depth: 0,
    };
    // SAFETY: the walk has no words.
    let mut found = |start| unsafe { walked.known.find(&start, &mut nothing) };
    assert_eq!(found(other), None);
    assert_eq!(found(start), Some(hash));
}

#[test]
fn walks_from_one_place_are_told_apart() {
    let mut walked = Walked::new();
    let mut hashes = Vec::new();
    for address in 0..WAYS as u64 {
        walked.stack[5] = 0x3000 + address;
        assert_eq!(walked.find(walked.start()), None);
        hashes.push(walked.keep());
    }
    for _ in 0..2 {
        for (address, hash) in hashes.iter().enumerate() {
            walked.stack[5] = 0x3000 + address as u64;
            assert_eq!(walked.find(walked.start()), Some(*hash));
        }
    }
}

/// A loop makes more unwinds from one place than a set can hold. Each is guessed from the previous one.
#[test]
fn the_walk_that_followed_before_is_tried_first() {
    let mut walked = Walked::new();
    let walks = 3 * WAYS as u64;
    let mut made = 0;
    for _ in 0..3 {
        for address in 0..walks {
            walked.stack[5] = 0x3000 + address;
            if walked.find(walked.start()).is_none() {
                walked.keep();
                made += 1;
            }
        }
    }
    // The first of them once more: its successor was not known yet, and its slot was reused.
    assert_eq!(made, walks + 1);
}

#[test]
fn what_cannot_be_kept_is_not() {
    let mut walked = Walked::new();
    walked.reads.begin();
    walked.reads.something_else();
    walked
        .known
        .keep(walked.start(), &walked.reads, StackHash::of(&[]));
    assert_eq!(walked.find(walked.start()), None);
    // More frames than the cache accepts.
    walked.keep();
    let (mut frames, start) = ([0; 1], walked.start());
    let mut output = FrameBuffer {
        frames: &mut frames,
        places: &mut [],
        depth: 0,
    };
    // SAFETY: the words exist, and nobody writes them meanwhile.
    assert_eq!(unsafe { walked.known.find(&start, &mut output) }, None);
}

#[test]
fn memory_is_bounded() {
    let mut walked = Walked::new();
    for address in 0..MOST_WORDS as u64 {
        walked.stack[5] = address;
        walked.keep();
        assert!(walked.known.words.len() <= MOST_WORDS);
    }
    assert!(walked.known.words.capacity() <= MOST_WORDS);
    assert!(walked.find(walked.start()).is_some());
    // Other caches use nearly the whole budget.
    let mut walked = Walked::new();
    let output: usize = std::iter::repeat_with(|| 1000)
        .take_while(|words| OF_ALL.take(*words))
        .sum();
    assert!(output > 0);
    let most = 1000 / (3 + WALK_COST) + 1;
    let kept = (0..=most as u64).take_while(|number| {
        walked.stack[1] = *number;
        walked.keep();
        walked.find(walked.start()).is_some()
    });
    assert!(kept.count() <= most, "there is no room");
    OF_ALL.release(output);
    walked.keep();
    assert!(walked.find(walked.start()).is_some());
}
