//! Laws: any range of an overlay is the same range of the image written out.

use crate::sample;
use muster_image::{Layout, Payload, overlay};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

/// Segments as a test describes them.
#[derive(Clone, Debug)]
enum Piece {
    File(u64, u64),
    Bytes(Vec<u8>),
    Zeros(u64),
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = prop_oneof![
        (0u64..500, 0u64..300).prop_map(|(at, len)| Piece::File(at, len)),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Piece::Bytes),
        (0u64..300).prop_map(Piece::Zeros),
    ];
    prop::collection::vec(piece, 0..12)
}

static FILE: LazyLock<(Arc<std::fs::File>, Vec<u8>)> = LazyLock::new(|| {
    let bytes: Vec<u8> = (0..1000_u32)
        .map(|n| n.wrapping_mul(31).to_le_bytes()[0])
        .collect();
    (sample::file(&bytes), bytes)
});

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

fn built(pieces: &[Piece]) -> (Layout, Vec<u8>) {
    let (mut layout, mut bytes) = (Layout::default(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::File(at, len) => {
                layout.push_file(&FILE.0, *at..at + len);
                bytes.extend_from_slice(&FILE.1[index(*at)..index(at + len)]);
            }
            Piece::Bytes(content) => {
                layout.push_bytes(content.clone());
                bytes.extend_from_slice(content);
            }
            Piece::Zeros(len) => {
                layout.push_zeros(*len);
                bytes.resize(bytes.len() + index(*len), 0);
            }
        }
    }
    (layout, bytes)
}

static IMAGES: LazyLock<Vec<(Layout, Vec<u8>)>> = LazyLock::new(|| {
    let payload = Payload {
        ignition: "{}".into(),
        ramdisk: Some("some ramdisk".into()),
        kernel_arguments: vec!["a=b".into()],
    };
    let bases = ["2021-09", "2023-07.x86_64", "2023-07.s390x"].map(sample::era);
    let made = bases.iter().flat_map(|base| {
        [
            overlay::full(base, &payload).unwrap(),
            overlay::minimal(base, &payload, "http://x/").unwrap(),
            overlay::initrd(base, &payload).unwrap(),
        ]
    });
    made.map(|layout| (layout.clone(), sample::whole(&layout)))
        .collect()
});

proptest! {
    #[test]
    fn a_layout_is_its_bytes(pieces in pieces(), from in 0u64..4000, len in 0u64..4000) {
        let (layout, bytes) = built(&pieces);
        prop_assert_eq!(layout.len(), bytes.len() as u64);
        let (from, to) = (from.min(layout.len()), (from + len).min(layout.len()));
        prop_assert_eq!(layout.bytes(from..to).unwrap(), &bytes[index(from)..index(to)]);
        prop_assert_eq!(sample::whole(&layout.slice(from..to)), &bytes[index(from)..index(to)]);
        prop_assert!(layout.bytes(from..layout.len() + 1).is_err());
    }

    #[test]
    fn patches_change_what_they_cover_and_nothing_else(
        pieces in pieces(), patch in pieces(), at in 0u64..4000, second in 0u64..4000,
    ) {
        let (layout, mut bytes) = built(&pieces);
        let (patch, content) = built(&patch);
        let room = layout.len().saturating_sub(patch.len());
        let at = at.min(room);
        prop_assume!(at + patch.len() <= layout.len());
        let mut patches = vec![(at, patch.clone())];
        bytes[index(at)..index(at) + content.len()].copy_from_slice(&content);
        let second = at + patch.len() + second;
        if second + 3 <= layout.len() {
            patches.insert(0, (second, Layout::of_bytes("abc")));
            bytes[index(second)..index(second) + 3].copy_from_slice(b"abc");
        }
        prop_assert_eq!(sample::whole(&layout.overlaid(patches)), bytes);
    }

    #[test]
    fn any_range_of_an_image_is_that_range_of_the_image_written_out(
        number in 0usize..9, from in 0u64..2_500_000, len in 0u64..300_000,
    ) {
        let (layout, bytes) = &IMAGES[number];
        let (from, to) = (from.min(layout.len()), (from + len).min(layout.len()));
        prop_assert!(sample::whole(&layout.slice(from..to)) == bytes[index(from)..index(to)]);
    }
}
