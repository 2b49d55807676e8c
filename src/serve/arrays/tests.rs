use std::borrow::Cow;

use super::*;

/// Every dialect.
fn dialects() -> impl Iterator<Item = Dialect> {
    let forms = [Form::Npy, Form::MsgpackNumpy, Form::Openpi];
    forms.into_iter().flat_map(|form| [Keys::Text, Keys::Binary].map(|keys| Dialect { form, keys }))
}

fn value_of(bytes: &[u8]) -> Value<'_> {
    decode(bytes).unwrap().value
}

fn problem(bytes: &[u8]) -> String {
    decode(bytes).expect_err("no message").to_string()
}

/// The bytes of a map, in a dialect that no array needs.
fn plain(map: Map<'_>) -> Vec<u8> {
    encode(&Value::Map(map), Dialect::DEFAULT)
}

#[test]
fn every_type_goes_through_every_dialect() {
    let numbers = [
        Dtype::Bool,
        Dtype::U8,
        Dtype::U16,
        Dtype::U32,
        Dtype::U64,
        Dtype::I8,
        Dtype::I16,
        Dtype::I32,
        Dtype::I64,
        Dtype::F16,
        Dtype::F32,
        Dtype::F64,
        Dtype::Text { chars: 2 },
    ];
    for dialect in dialects() {
        for dtype in numbers {
            for shape in [vec![], vec![3], vec![0, 2], vec![2, 1, 3]] {
                let length = shape.iter().product::<usize>() * dtype.size().unwrap();
                let data: Vec<u8> = (0..length).map(|byte| byte as u8 % 2).collect();
                let array = Array::new(dtype, shape, data).unwrap();
                let value = Value::Map(Map::default().with("a", Value::Array(array)));
                let bytes = encode(&value, dialect);
                let found = decode(&bytes).unwrap();
                assert_eq!(found, Message { value, dialect: Some(dialect) });
            }
        }
    }
}

#[test]
fn plain_values_go_through() {
    let numbers = [0, 1, 127, 128, 255, 256, 65_535, 65_536, u64::from(u32::MAX), u64::MAX];
    let negative = [-1, -32, -33, -128, -129, -32_768, -32_769, i64::from(i32::MIN), i64::MIN];
    let long = "x".repeat(70_000);
    let mut items = vec![Value::Nil, Value::Bool(true), Value::Bool(false), Value::Float(-0.5)];
    items.extend(numbers.map(Value::Unsigned));
    items.extend(negative.map(Value::Negative));
    for length in [0, 31, 32, 255, 256, 65_535, 65_536, 70_000] {
        items.push(Value::Text(Cow::Borrowed(&long[..length])));
        items.push(Value::Bytes(Cow::Borrowed(&long.as_bytes()[..length])));
    }
    let value = Value::List(items);
    let bytes = encode(&value, Dialect::DEFAULT);
    assert_eq!(decode(&bytes).unwrap(), Message { value, dialect: None });
}

#[test]
fn an_array_is_borrowed_from_its_message() {
    let array = Array::of_f32(vec![2], &[1.0, 2.0]).unwrap();
    for dialect in dialects() {
        let bytes = encode(&Value::Array(array.clone()), dialect);
        let Value::Array(found) = value_of(&bytes) else { panic!("no array") };
        assert!(bytes.as_ptr_range().contains(&found.bytes().as_ptr()));
    }
}

#[test]
fn numbers_of_numpy_are_arrays_without_axes() {
    let map = Map::from_entries(
        [
            ("nd", Value::Bool(false)),
            ("type", Value::from("<f4")),
            ("data", Value::Bytes(Cow::Borrowed(&[0, 0, 0x80, 0x3F]))),
        ]
        .map(|(key, value)| (Key::Bytes(key.as_bytes().into()), value))
        .into(),
    );
    let bytes = plain(map);
    let Value::Array(array) = value_of(&bytes) else { panic!("no array") };
    assert_eq!((array.shape(), array.numbers().unwrap()), (&[][..], vec![1.0]));
}

#[test]
fn objects_and_records_are_refused_in_every_form() {
    let msgpack_numpy = |kind: &'static str, descr: Value<'static>| {
        let map = Map::default().with("nd", Value::Bool(true)).with("type", descr);
        let map = map.with("kind", kind).with("shape", Value::List(vec![Value::Unsigned(1)]));
        problem(&plain(map.with("data", Value::Bytes(Cow::Borrowed(b"x")))))
    };
    assert!(msgpack_numpy("O", "|O".into()).contains("Python objects"));
    assert!(msgpack_numpy("", "|O".into()).contains("Python objects"));
    assert!(msgpack_numpy("V", Value::List(vec![])).contains("records"));
    assert!(msgpack_numpy("", Value::List(vec![])).contains("records"));
    let openpi = Map::default()
        .with("__ndarray__", Value::Bool(true))
        .with("data", Value::Bytes(Cow::Borrowed(b"")))
        .with("dtype", "|O")
        .with("shape", Value::List(vec![]));
    assert!(problem(&plain(openpi)).contains("Python objects"));
    let header = "{'descr': '|O', 'fortran_order': False, 'shape': (), }\n";
    let file = [b"\x93NUMPY\x01\x00", &[header.len() as u8, 0][..], header.as_bytes()].concat();
    let npy = Map::default()
        .with("__ndarray_class__", Value::Bool(true))
        .with("as_npy", Value::Bytes(Cow::Owned(file)));
    assert!(problem(&plain(npy)).contains("Python objects"));
}

#[test]
fn maps_that_are_almost_arrays_are_named_with_their_path() {
    let inside = |map: Map<'static>| {
        problem(&plain(
            Map::default().with("data", Value::Map(Map::default().with("arm", Value::Map(map)))),
        ))
    };
    let npy = || Map::default().with("__ndarray_class__", Value::Bool(true));
    assert_eq!(inside(npy()), "data.arm: its map has no 'as_npy'");
    let text = inside(npy().with("as_npy", Value::Nil));
    assert_eq!(text, "data.arm: 'as_npy' of its map is nothing; accepted: binary data");
    assert!(inside(npy().with("as_npy", "PK")).contains("does not begin as npy"));
    let openpi = || {
        let map = Map::default().with("__ndarray__", Value::Bool(true)).with("dtype", "<f4");
        map.with("data", Value::Bytes(Cow::Borrowed(&[0; 8])))
    };
    let shaped = |axes: Vec<Value<'static>>| inside(openpi().with("shape", Value::List(axes)));
    assert_eq!(inside(openpi()), "data.arm: its map has no 'shape'");
    assert!(shaped(vec![Value::Negative(-1)]).contains("a list with something else"));
    assert!(shaped(vec![Value::Unsigned(3)]).contains("needs 12 bytes, but it has 8"));
    assert!(shaped(vec![Value::Unsigned(u64::MAX), Value::Unsigned(2)]).contains("counted"));
    assert!(shaped(vec![Value::Unsigned(1); 9]).contains("9 axes"));
}

#[test]
fn other_maps_stay_maps() {
    let map =
        Map::default().with("nd", Value::Unsigned(1)).with("__ndarray__", Value::List(vec![]));
    let bytes = plain(map.clone());
    assert_eq!(value_of(&bytes), Value::Map(map));
}

#[test]
fn bytes_that_are_no_message_are_named() {
    assert_eq!(problem(b""), "the request: it is no MessagePack: cut off at byte 0");
    assert!(problem(b"\xc1").contains("byte 0 is 0xc1"));
    assert!(problem(b"\x01\x02\x03").contains("2 bytes follow"));
    assert!(problem(b"\xa5abc").contains("cut off at byte 1"));
    assert!(problem(b"\xc6\xff\xff\xff\xff").contains("cut off at byte 5"));
    // Lengths of 4 Gi entries in five bytes take no memory.
    assert!(problem(b"\xdd\xff\xff\xff\xff").contains("cut off"));
    assert!(problem(b"\xdf\xff\xff\xff\xff").contains("cut off"));
    assert!(problem(&[0x91; 1000]).contains("deeper than 16"));
    assert!(problem(b"\xd4\x00\x00").contains("extension"));
    assert!(problem(b"\x81\x01\x02").contains("a key of the map is an integer"));
    assert_eq!(problem(b"\x82\xa1a\x01\xa1a\x02"), "the request: the key 'a' stands twice");
    assert_eq!(
        problem(b"\x81\xa1a\x91\xc1"),
        "a.0: it is no MessagePack: byte 4 is 0xc1, which is never used"
    );
    let many = [b"\xdd\x00\x10\x00\x00", &[0xc0; 0x10_0000][..]].concat();
    assert!(problem(&many).contains("more than 100000 values"));
    assert_eq!(value_of(b"\xa1\xff"), Value::Bytes(Cow::Borrowed(b"\xff")));
}
