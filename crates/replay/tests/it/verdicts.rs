//! Same, within tolerance, differs.

use tracesmith_replay::{Close, Difference, Float, Tolerance, Verdict};

use crate::support::window::{
    BASE, Float as Number32, Long, Number, Window, copy, fill, launch, synchronize,
};
use crate::support::{assert_same, difference, floats, replayed, under_fake, verdict, words};

/// A window whose calls leave one buffer as it is, recorded as if they had left something else.
fn left(before: &[u8], after: &[u8]) -> Window {
    let mut window = Window::new();
    window.changed(BASE, before, after);
    window.call(launch("noop", &[]));
    window
}

/// The verdict on a buffer under some tolerances.
fn judged(recorded: &[u8], found: &[u8], tolerances: &[Tolerance]) -> Verdict {
    replayed(&left(found, recorded), |replay| {
        replay.set_tolerances(tolerances);
        replay.run().unwrap().verdict
    })
}

fn tolerance(float: Float, relative: f64, absolute: f64) -> Tolerance {
    Tolerance {
        float,
        absolute,
        relative,
    }
}

fn close(verdict: &Verdict) -> &Close {
    match verdict {
        Verdict::Within { close, .. } if close.len() == 1 => &close[0],
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_that_comes_out_as_recorded_is_the_same() {
    under_fake(&[], || {
        let mut window = Window::new();
        let x = BASE + 0x1000;
        window.changed(BASE, &floats(&[1.0; 64]), &floats(&[7.0; 64]));
        window.kept(x, &floats(&[2.0; 64]));
        window.call(launch("saxpy", &[Long(BASE), Long(x), Number32(3.0), Number(64)]));
        window.call(synchronize(0, 0));
        replayed(&window, |replay| {
            for _ in 0..3 {
                let run = replay.run().unwrap();
                assert_same(&run.verdict, 2, 512);
                assert_eq!(run.commands, 2);
                assert!(run.verdict.is_good());
            }
        });
    });
}

#[test]
fn a_difference_has_its_buffer_offset_bytes_and_count() {
    under_fake(&[], || {
        let mut recorded = words(&[5; 16]);
        recorded[17] = 9;
        recorded[40] = 1;
        recorded[41] = 1;
        let mut window = Window::new();
        window.changed(BASE, &words(&[0; 16]), &recorded);
        window.kept(BASE + 0x200, &words(&[1]));
        window.call(fill(BASE, 5, 16));
        let verdict = verdict(&window);
        assert!(!verdict.is_good());
        assert!(matches!(verdict, Verdict::Differs { buffers: 2, .. }));
        let expected = Difference {
            address: BASE,
            bytes: 64,
            offset: 17,
            expected: recorded[17..25].to_vec(),
            found: words(&[5; 16])[17..25].to_vec(),
            count: 3,
            call: None,
        };
        assert_eq!(*difference(&verdict), expected);
        let text = difference(&verdict).to_string();
        assert_eq!(
            text,
            "0x24000000000: 3 of 64 bytes differ, first at offset 17: expected 0900000500000005, found 0000000500000005"
        );
    });
}

#[test]
fn a_difference_in_the_last_byte_counts() {
    under_fake(&[], || {
        let mut recorded = vec![3; 7];
        recorded[6] = 4;
        let verdict = verdict(&left(&[3; 7], &recorded));
        let difference = difference(&verdict);
        assert_eq!((difference.offset, difference.count), (6, 1));
        assert_eq!(
            (difference.expected.as_slice(), difference.found.as_slice()),
            ([4].as_slice(), [3].as_slice())
        );
    });
}

/// Contents are recorded in pieces of 256 KiB; a difference is counted over all of them.
#[test]
fn a_buffer_of_several_pieces_is_one_buffer() {
    under_fake(&[], || {
        const PIECE: usize = 256 << 10;
        let mut window = Window::new();
        let (before, mut after) = (vec![1; 2 * PIECE + 12], vec![1; 2 * PIECE + 12]);
        (after[PIECE + 5], after[2 * PIECE + 11]) = (2, 2);
        window.changed(BASE, &before, &after);
        window.pieces.clear();
        for (moment, content) in [(0, &before), (1, &after)] {
            for (index, piece) in content.chunks(PIECE).enumerate() {
                let address = BASE + (index * PIECE) as u64;
                window.piece(tracesmith_format::tables::Moment(moment), 0, address, piece);
            }
        }
        window.call(launch("noop", &[]));
        let verdict = verdict(&window);
        let difference = difference(&verdict);
        assert_eq!(difference.offset, PIECE as u64 + 5);
        assert_eq!((difference.count, difference.bytes), (2, after.len() as u64));
    });
}

#[test]
fn numbers_of_each_type_may_be_apart() {
    under_fake(&[], || {
        let half = |bits: u16| bits.to_le_bytes();
        // Two neighbours each, and what lies between them.
        let cases = [
            (
                Float::F16,
                [half(0x3C00), half(0x4000)].concat(),
                half(0x3C01).to_vec(),
                2.0_f64.powi(-10),
            ),
            (
                Float::Bf16,
                [half(0x3F80), half(0x4000)].concat(),
                half(0x3F81).to_vec(),
                2.0_f64.powi(-7),
            ),
            (
                Float::F32,
                floats(&[1.0, 2.0]),
                (1.0 + f32::EPSILON).to_le_bytes().to_vec(),
                f64::from(f32::EPSILON),
            ),
            (
                Float::F64,
                [1.0_f64.to_le_bytes(), 2.0_f64.to_le_bytes()].concat(),
                (1.0 + f64::EPSILON).to_le_bytes().to_vec(),
                f64::EPSILON,
            ),
        ];
        for (float, recorded, next, apart) in cases {
            let mut found = recorded.clone();
            found[..next.len()].copy_from_slice(&next);
            let relative = judged(&recorded, &found, &[tolerance(float, apart, 0.0)]);
            assert!(relative.is_good());
            let expected = Close {
                address: BASE,
                bytes: recorded.len() as u64,
                float,
                elements: 1,
                largest: apart,
            };
            assert_eq!(*close(&relative), expected);
            let absolute = judged(&recorded, &found, &[tolerance(float, 0.0, apart)]);
            assert_eq!(*close(&absolute), expected);
            for tight in [
                tolerance(float, apart * 0.9, 0.0),
                tolerance(float, 0.0, apart * 0.9),
            ] {
                let verdict = judged(&recorded, &found, &[tight]);
                assert!(!verdict.is_good(), "{float:?} {verdict:?}");
            }
            // Without a tolerance one bit is a difference.
            assert!(!judged(&recorded, &found, &[]).is_good());
        }
    });
}

#[test]
fn nan_is_near_nan_only_and_an_infinity_near_its_own() {
    under_fake(&[], || {
        let wide = [tolerance(Float::F32, 1e9, 1e9)];
        let verdict = |recorded: f32, found: f32| judged(&floats(&[recorded]), &floats(&[found]), &wide);
        let other_nan = f32::from_bits(f32::NAN.to_bits() | 1);
        let of_nan = verdict(f32::NAN, other_nan);
        assert_eq!((close(&of_nan).elements, close(&of_nan).largest), (1, 0.0));
        for (recorded, found) in [
            (f32::NAN, 1.0),
            (1.0, f32::NAN),
            (f32::INFINITY, f32::NEG_INFINITY),
            (f32::INFINITY, 1.0),
            (1.0, f32::NEG_INFINITY),
            (f32::NAN, f32::INFINITY),
        ] {
            assert!(!verdict(recorded, found).is_good(), "{recorded} {found}");
        }
        assert_same(&verdict(f32::INFINITY, f32::INFINITY), 1, 4);
        // The two zeros are the same number, and not the same bytes.
        assert_eq!(close(&verdict(0.0, -0.0)).largest, 0.0);
    });
}

#[test]
fn infinities_of_each_type_are_told_apart_from_large_numbers() {
    under_fake(&[], || {
        let half = |bits: u16| bits.to_le_bytes().to_vec();
        for (float, infinity, large) in [
            (Float::F16, half(0x7C00), half(0x7BFF)),
            (Float::Bf16, half(0x7F80), half(0x7F7F)),
            (
                Float::F64,
                f64::INFINITY.to_le_bytes().to_vec(),
                f64::MAX.to_le_bytes().to_vec(),
            ),
        ] {
            let wide = [tolerance(float, 10.0, f64::MAX)];
            assert!(!judged(&infinity, &large, &wide).is_good(), "{float:?}");
            assert!(!judged(&large, &infinity, &wide).is_good(), "{float:?}");
        }
    });
}

#[test]
fn all_of_a_buffer_must_be_near_as_one_type() {
    under_fake(&[], || {
        // The first element is near as a float only, the last two bytes as halves only.
        let recorded = [1.0_f32.to_le_bytes(), [0, 0x3C, 0, 0x3C]].concat();
        let found = [(1.0 + f32::EPSILON).to_le_bytes(), [0, 0x3C, 1, 0x3C]].concat();
        let (f16, f32) = (tolerance(Float::F16, 1e-2, 0.0), tolerance(Float::F32, 1e-6, 0.0));
        assert!(!judged(&recorded, &found, &[f16, f32]).is_good());
        // The first type that fits is the one that is reported.
        let near = [(1.0 + f32::EPSILON).to_le_bytes(), [0, 0x3C, 0, 0x3C]].concat();
        assert_eq!(close(&judged(&recorded, &near, &[f16, f32])).float, Float::F32);
    });
}

#[test]
fn bytes_that_are_no_whole_number_must_be_the_same() {
    under_fake(&[], || {
        let wide = [tolerance(Float::F32, 1.0, 1.0)];
        let recorded = [1.0_f32.to_le_bytes().as_slice(), &[7, 7]].concat();
        let mut found = recorded.clone();
        found[5] = 8;
        assert!(!judged(&recorded, &found, &wide).is_good());
    });
}

#[test]
fn one_buffer_that_differs_outweighs_others_that_are_near() {
    under_fake(&[], || {
        let mut window = left(&floats(&[1.0]), &floats(&[1.0 + f32::EPSILON]));
        window.changed(BASE + 0x100, &floats(&[1.0]), &floats(&[2.0]));
        replayed(&window, |replay| {
            replay.set_tolerances(&[tolerance(Float::F32, 1e-5, 0.0)]);
            let verdict = replay.run().unwrap().verdict;
            assert_eq!(difference(&verdict).address, BASE + 0x100);
            replay.set_tolerances(&[tolerance(Float::F32, 1.0, 0.0)]);
            let verdict = replay.run().unwrap().verdict;
            match verdict {
                Verdict::Within {
                    buffers: 2,
                    bytes: 8,
                    close,
                } => assert_eq!(close.len(), 2),
                other => panic!("{other:?}"),
            }
        });
    });
}

/// What was recorded at the end is compared, whatever the calls did: a call that has no effect here shows.
#[test]
fn a_copy_that_brings_nothing_new_is_compared_all_the_same() {
    under_fake(&[], || {
        let mut window = Window::new();
        let source = BASE + 0x100;
        window.kept(source, &[1; 32]);
        window.changed(BASE, &[0; 32], &[2; 32]);
        window.call(copy(BASE, source, 32));
        let verdict = verdict(&window);
        assert_eq!(difference(&verdict).count, 32);
        assert_eq!(difference(&verdict).found, [1; 8]);
    });
}
