//! Arrays as numpy, msgpack and msgpack-numpy write them.

use gr00t_blackhole::serve::arrays::{
    Array, Dialect, Dtype, Form, Keys, Message, Value, decode, encode, read_npy, write_npy,
};
use proptest::prelude::*;

use crate::stored;

/// The dialect of a group of stored arrays; `None` for npy files.
fn dialect(group: &str) -> Option<Dialect> {
    Some(match group {
        "class" => Dialect { form: Form::Npy, keys: Keys::Text },
        "msgpack_numpy" => Dialect { form: Form::MsgpackNumpy, keys: Keys::Binary },
        "text" => Dialect { form: Form::MsgpackNumpy, keys: Keys::Text },
        "openpi" => Dialect { form: Form::Openpi, keys: Keys::Binary },
        "openpi_text" => Dialect { form: Form::Openpi, keys: Keys::Text },
        _ => return None,
    })
}

/// Asserts that the elements count up from 0; of booleans, every second one is true.
fn assert_counting(name: &str, array: &Array<'_>) {
    let found = if array.dtype() == Dtype::Bool {
        array.bytes().iter().map(|byte| f64::from(*byte)).collect()
    } else {
        array.numbers().unwrap()
    };
    let expected = (0..found.len()).map(|i| if array.dtype() == Dtype::Bool { i % 2 } else { i });
    assert!(expected.eq(found.iter().map(|value| *value as usize)), "{name}: {found:?}");
    assert!(found.iter().all(|value| value.fract() == 0.0), "{name}: {found:?}");
    assert_eq!(found.len(), array.shape().iter().product::<usize>(), "{name}");
}

#[test]
fn every_stored_array_is_read_and_written_byte_for_byte() {
    let (mut files, mut messages) = (0, 0);
    for (name, bytes) in stored::arrays() {
        let parts: Vec<&str> = name.split('/').collect();
        let [group, dtype, shape] = parts[..] else { continue };
        let sizes: Vec<usize> = shape.split('x').filter_map(|size| size.parse().ok()).collect();
        let check = |array: &Array<'_>| {
            assert_counting(&name, array);
            assert_eq!(array.shape(), sizes, "{name}");
            let found = format!("{:?}", array.dtype()).to_lowercase();
            let expected = dtype.replace("uint", "u").replace("int", "i").replace("float", "f");
            assert_eq!(found, expected, "{name}");
        };
        let Some(dialect) = dialect(group) else {
            let array = read_npy(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            check(&array);
            assert_eq!(write_npy(&array), bytes, "{name}");
            files += 1;
            continue;
        };
        let message = decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(message.dialect, Some(dialect), "{name}");
        let Value::Array(array) = &message.value else { panic!("{name} is no array") };
        check(array);
        assert_eq!(encode(&message.value, dialect), bytes, "{name}");
        messages += 1;
    }
    assert_eq!((files, messages), (12 * 4, 5 * 12 * 4));
}

#[test]
fn other_versions_and_orders_are_read() {
    let mut shapes = vec![];
    for (name, bytes) in stored::arrays() {
        if let Some(name) = name.strip_prefix("other/") {
            let array = read_npy(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_counting(name, &array);
            shapes.push((name.to_owned(), array.shape().to_vec()));
        }
    }
    let expected: [(&str, &[usize]); 5] = [
        ("version2", &[1, 2, 3]),
        ("version3", &[1, 2, 3]),
        ("fortran", &[2, 3, 4]),
        ("big_endian", &[2, 3]),
        ("big_fortran", &[2, 3]),
    ];
    assert_eq!(shapes, expected.map(|(name, shape)| (name.to_owned(), shape.to_vec())));
}

#[test]
fn objects_records_and_other_types_are_refused() {
    for (name, words) in [
        ("refused/objects", "Python objects"),
        ("refused/records", "records"),
        ("refused/complex", "'<c8'"),
        ("refused/times", "'<M8[ns]'"),
        ("refused/objects_msgpack_numpy", "Python objects"),
        ("refused/records_msgpack_numpy", "records"),
    ] {
        let (_, bytes) = stored::arrays().into_iter().find(|(found, _)| found == name).unwrap();
        let error = if name.ends_with("msgpack_numpy") {
            decode(&bytes).expect_err(name).to_string()
        } else {
            read_npy(&bytes).expect_err(name).to_string()
        };
        assert!(error.contains(words), "{name}: {error}");
    }
}

#[test]
fn strings_are_read() {
    let (_, bytes) = stored::arrays().into_iter().find(|(name, _)| name == "text/strings").unwrap();
    assert_eq!(read_npy(&bytes).unwrap().texts().unwrap(), ["pick", "añ"]);
}

fn dtypes() -> impl Strategy<Value = Dtype> {
    prop_oneof![
        Just(Dtype::Bool),
        Just(Dtype::U8),
        Just(Dtype::I16),
        Just(Dtype::U32),
        Just(Dtype::I64),
        Just(Dtype::F16),
        Just(Dtype::F32),
        Just(Dtype::F64),
        (1usize..5).prop_map(|chars| Dtype::Text { chars }),
    ]
}

fn dialects() -> impl Strategy<Value = Dialect> {
    let form = prop_oneof![Just(Form::Npy), Just(Form::MsgpackNumpy), Just(Form::Openpi)];
    let keys = prop_oneof![Just(Keys::Text), Just(Keys::Binary)];
    (form, keys).prop_map(|(form, keys)| Dialect { form, keys })
}

fn arrays() -> impl Strategy<Value = Array<'static>> {
    (dtypes(), prop::collection::vec(0usize..5, 0..5)).prop_flat_map(|(dtype, shape)| {
        let bytes = shape.iter().product::<usize>() * dtype.size().unwrap();
        prop::collection::vec(any::<u8>(), bytes)
            .prop_map(move |data| Array::new(dtype, shape.clone(), data).unwrap())
    })
}

/// Everything that may be asked of what comes out of foreign bytes.
fn use_array(array: &Array<'_>) {
    let elements = array.shape().iter().product::<usize>();
    assert!(array.numbers().is_none_or(|numbers| numbers.len() == elements));
    assert!(array.texts().is_none_or(|texts| texts.len() <= elements));
}

fn use_value(value: &Value<'_>) {
    match value {
        Value::Array(array) => use_array(array),
        Value::List(items) => items.iter().for_each(use_value),
        Value::Map(map) => map.iter().for_each(|(_, value)| use_value(value)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arrays_go_through_every_dialect(array in arrays(), dialect in dialects()) {
        let value = Value::Array(array);
        let bytes = encode(&value, dialect);
        let found = decode(&bytes).unwrap();
        prop_assert_eq!(found, Message { value, dialect: Some(dialect) });
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(message) = decode(&bytes) {
            use_value(&message.value);
        }
        let npy = [b"\x93NUMPY\x01\x00", &bytes[..]].concat();
        if let Ok(array) = read_npy(&npy) {
            use_array(&array);
        }
    }

    /// A message that is still decoded after a change says the same when it is written and read again.
    #[test]
    fn changed_messages_are_read_or_refused(
        pick in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let stored = stored::arrays();
        let (name, mut bytes) = pick.get(&stored).clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(array) = read_npy(&bytes) {
            use_array(&array);
            let written = write_npy(&array);
            prop_assert_eq!(read_npy(&written).unwrap(), array, "{}", name);
        }
        if let Ok(message) = decode(&bytes) {
            use_value(&message.value);
        }
    }
}
