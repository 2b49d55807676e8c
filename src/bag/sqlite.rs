//! SQLite files of rosbag2, of all its schemas.
//!
//! Since the first version there are `topics (id, name, type, serialization_format)` and `messages (id, topic_id, timestamp, data)`;
//! later ones added columns and tables, of which definitions and stored metadata are used where they are.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row};

use super::error::BagError;
use super::limits::{MAX_METADATA_BYTES, MAX_TOPICS};
use super::note::Note;
use super::storage::{Found, Part, Place, file_name};
use super::topic::{Topic, is_stamped};
use crate::locked::locked;

/// Messages are read in pages of so many, or so many bytes if that is less.
const PAGE_MESSAGES: usize = 1024;
const PAGE_BYTES: usize = 16 << 20;
/// How long a recorder that is still writing is waited for.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the header of a file has the size of its pages.
const PAGE_SIZE_AT: usize = 16;
const HEADER_LEN: usize = 100;
/// What to do about a damaged file.
const RECOVER: &str = "; `sqlite3 FILE .recover` saves what can be saved";

/// An opened SQLite file.
pub(super) struct SqliteFile {
    path: PathBuf,
    connection: Mutex<Connection>,
    topics: Vec<Topic>,
    /// Row id of a topic -> index into the topics.
    ids: BTreeMap<i64, usize>,
    span: Option<(u64, u64)>,
    pub notes: Vec<Note>,
}

impl SqliteFile {
    /// Opens the file at `inner`, which errors call `path`, without writing anything.
    ///
    /// # Errors
    /// A file that SQLite cannot read, or that is no bag.
    pub fn open(path: &Path, inner: &Path) -> Result<Self, BagError> {
        let failed = |error: rusqlite::Error| sqlite_error(path, &error);
        let mut notes = Vec::new();
        check_length(path, inner)?;
        let connection = connect(path, inner, &mut notes).map_err(failed)?;
        let (topics, ids) = read_topics(&connection, path)?;
        let span = read_span(&connection, path)?;
        if !has_time_index(&connection).map_err(failed)? {
            notes.push(Note::NoTimeIndex { file: file_name(path) });
        }
        let connection = Mutex::new(connection);
        Ok(Self { path: path.into(), connection, topics, ids, span, notes })
    }

    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    pub fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// The page that all reading begins with.
    pub fn first_part(&self) -> Option<Part> {
        let place = Place::After { timestamp: i64::MIN, id: i64::MIN };
        self.span.map(|(start_ns, _)| Part { start_ns, place })
    }

    /// Reads the page behind a row, and says where the next one begins.
    ///
    /// # Errors
    /// A row that cannot be read or does not hold what it should.
    pub fn load(
        &self,
        timestamp: i64,
        id: i64,
        wanted: impl Fn(usize) -> bool,
        found: &mut Vec<Found>,
    ) -> Result<Option<Part>, BagError> {
        let connection = self.connection();
        let keys = self.keys(&connection, timestamp, id)?;
        let mut bytes = 0;
        for (number, key) in keys.iter().enumerate() {
            let topic = *self.ids.get(&key.topic).ok_or_else(|| {
                let (id, topic) = (key.id, key.topic);
                self.invalid(format!("message {id} is of topic {topic}, which there is not"))
            })?;
            if wanted(topic) {
                let data = self.data(&connection, key.id)?;
                bytes += data.len();
                let log_time_ns = self.time(key)?;
                found.push(Found { topic, log_time_ns, order: (key.id, 0), data });
            }
            let last = number + 1 == keys.len();
            if bytes >= PAGE_BYTES || (last && keys.len() == PAGE_MESSAGES) {
                let place = Place::After { timestamp: key.timestamp, id: key.id };
                return Ok(Some(Part { start_ns: self.time(key)?, place }));
            }
        }
        Ok(None)
    }

    /// The text of `metadata.yaml` as rosbag2 stores it in the file since Iron.
    pub fn embedded_metadata(&self) -> Option<String> {
        let connection = self.connection();
        let query =
            "SELECT metadata FROM metadata WHERE length(metadata) <= ?1 ORDER BY id DESC LIMIT 1";
        let text = connection.query_row(query, [MAX_METADATA_BYTES as i64], |row| row.get(0));
        text.ok()
    }

    /// Counts the messages of every topic, which takes a walk over all rows.
    ///
    /// # Errors
    /// A file that SQLite cannot read.
    pub fn count(&mut self) -> Result<(), BagError> {
        let counts = {
            let connection = self.connection();
            let read = || -> rusqlite::Result<Vec<(i64, i64)>> {
                let query = "SELECT topic_id, count(*) FROM messages GROUP BY topic_id";
                let mut statement = connection.prepare(query)?;
                let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                rows.collect()
            };
            read().map_err(|error| sqlite_error(&self.path, &error))?
        };
        for topic in &mut self.topics {
            topic.messages = Some(0);
        }
        for (id, count) in counts {
            if let Some(&topic) = self.ids.get(&id) {
                self.topics[topic].messages = u64::try_from(count).ok();
            }
        }
        Ok(())
    }

    /// Rows behind the one of this time and id, in the order of time, without their data.
    fn keys(&self, connection: &Connection, timestamp: i64, id: i64) -> Result<Vec<Key>, BagError> {
        let query = "SELECT id, topic_id, timestamp FROM messages \
                     WHERE timestamp >= ?1 AND (timestamp > ?1 OR id > ?2) \
                     ORDER BY timestamp, id LIMIT ?3";
        let read = || -> rusqlite::Result<Vec<Key>> {
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map((timestamp, id, PAGE_MESSAGES as i64), Key::of)?;
            rows.collect()
        };
        read().map_err(|error| sqlite_error(&self.path, &error))
    }

    fn data(&self, connection: &Connection, id: i64) -> Result<Vec<u8>, BagError> {
        let read = || -> rusqlite::Result<Vec<u8>> {
            let mut statement =
                connection.prepare_cached("SELECT data FROM messages WHERE id = ?1")?;
            statement.query_row([id], |row| row.get(0))
        };
        read().map_err(|error| sqlite_error(&self.path, &error))
    }

    fn time(&self, key: &Key) -> Result<u64, BagError> {
        time(key.timestamp).map_err(|reason| self.invalid(reason))
    }

    fn invalid(&self, reason: String) -> BagError {
        BagError::Sqlite { path: self.path.clone(), reason }
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // Reading leaves nothing half done.
        locked(&self.connection)
    }
}

/// A row of `messages` without its data.
struct Key {
    id: i64,
    topic: i64,
    timestamp: i64,
}

impl Key {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { id: row.get(0)?, topic: row.get(1)?, timestamp: row.get(2)? })
    }
}

/// Opens a file that nobody writes to as unchangeable, which works on read-only disks too. If SQLite has left a log or a journal
/// beside it, the file alone is not the bag, and SQLite has to look at both.
fn connect(path: &Path, inner: &Path, notes: &mut Vec<Note>) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let log = is_filled(inner, "-wal");
    let connection = if log || is_filled(inner, "-journal") {
        Connection::open_with_flags(inner, flags)?
    } else {
        let uri = unchangeable(inner);
        Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
    };
    if log {
        notes.push(Note::WriteAheadLog { file: file_name(path) });
    }
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// A file that is cut off within a page is read by SQLite as if zeros stood there.
fn check_length(path: &Path, inner: &Path) -> Result<(), BagError> {
    let mut header = Vec::with_capacity(HEADER_LEN);
    let file = File::open(inner).map_err(BagError::io(path))?;
    let length = file.metadata().map_err(BagError::io(path))?.len();
    file.take(HEADER_LEN as u64).read_to_end(&mut header).map_err(BagError::io(path))?;
    let invalid = |reason| BagError::Sqlite { path: path.into(), reason };
    let page = header.get(PAGE_SIZE_AT..).and_then(|rest| rest.first_chunk::<2>());
    let page = match page.map(|bytes| u64::from(u16::from_be_bytes(*bytes))) {
        // 65536 does not fit.
        Some(1) => 65_536,
        Some(page @ 512..) => page,
        _ => return Err(invalid("its header is damaged".into())),
    };
    if length % page != 0 {
        return Err(invalid(format!(
            "it is cut off: {length} bytes are no whole number of pages of {page}{RECOVER}"
        )));
    }
    Ok(())
}

fn is_filled(path: &Path, suffix: &str) -> bool {
    let mut beside: OsString = path.into();
    beside.push(suffix);
    std::fs::metadata(beside).is_ok_and(|found| found.len() > 0)
}

/// The URI of a file that does not change; every byte that has a meaning in a URI is escaped.
fn unchangeable(path: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    uri.into()
}

type Topics = (Vec<Topic>, BTreeMap<i64, usize>);

fn read_topics(connection: &Connection, path: &Path) -> Result<Topics, BagError> {
    let failed = |error: rusqlite::Error| sqlite_error(path, &error);
    let definitions = read_definitions(connection).map_err(failed)?;
    let query = "SELECT id, name, type, serialization_format FROM topics ORDER BY id";
    let rows = || -> rusqlite::Result<Vec<(i64, String, String, String)>> {
        let mut statement = connection.prepare(query)?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        rows.take(MAX_TOPICS + 1).collect()
    };
    let rows = rows().map_err(failed)?;
    if rows.len() > MAX_TOPICS {
        let reason = format!("it has more than {MAX_TOPICS} topics");
        return Err(BagError::Sqlite { path: path.into(), reason });
    }
    let (mut topics, mut ids): Topics = (Vec::new(), BTreeMap::new());
    for (id, name, message_type, encoding) in rows {
        let definition = definitions.get(&message_type);
        let definition = definition.map(|(encoding, text)| (encoding.as_str(), text.as_bytes()));
        let stamped = is_stamped(&message_type, definition);
        ids.insert(id, topics.len());
        topics.push(Topic { name, message_type, encoding, stamped, messages: None });
    }
    Ok((topics, ids))
}

/// Message type -> encoding and text of its definition; files from before Iron have none.
fn read_definitions(
    connection: &Connection,
) -> rusqlite::Result<BTreeMap<String, (String, String)>> {
    if !connection.table_exists(None::<&str>, "message_definitions")? {
        return Ok(BTreeMap::new());
    }
    let query = "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    rows.collect()
}

fn read_span(connection: &Connection, path: &Path) -> Result<Option<(u64, u64)>, BagError> {
    let end = |order: &str| -> rusqlite::Result<Option<i64>> {
        let query = format!("SELECT timestamp FROM messages ORDER BY timestamp {order} LIMIT 1");
        connection.query_row(&query, [], |row| row.get(0)).optional()
    };
    let ends = end("ASC").and_then(|first| Ok(first.zip(end("DESC")?)));
    let ends = ends.map_err(|error| sqlite_error(path, &error))?;
    let invalid = |reason| BagError::Sqlite { path: path.into(), reason };
    ends.map(|(first, last)| Ok((time(first)?, time(last)?))).transpose().map_err(invalid)
}

/// Whether messages can be found by their time.
fn has_time_index(connection: &Connection) -> rusqlite::Result<bool> {
    let query = "SELECT count(*) FROM pragma_index_list('messages') AS list \
                 JOIN pragma_index_info(list.name) AS info WHERE info.seqno = 0 AND info.name = 'timestamp'";
    connection.query_row(query, [], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

/// A time of SQLite, which has signed numbers only.
fn time(timestamp: i64) -> Result<u64, String> {
    u64::try_from(timestamp).map_err(|_| format!("a message is of {timestamp} ns, before 1970"))
}

fn sqlite_error(path: &Path, error: &rusqlite::Error) -> BagError {
    let fix = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => RECOVER,
        Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::ReadOnly) => {
            "; copy it, with its -wal or -journal file, to where it can be written, and run `sqlite3 FILE 'PRAGMA wal_checkpoint'` there"
        }
        _ => "",
    };
    BagError::Sqlite { path: path.into(), reason: format!("{error}{fix}") }
}
