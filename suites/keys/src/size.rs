//! The size of the suite's tables and indexes, from the `dbstat` of each b-tree.

use crate::work::{LINKS, TABLES};
use stablebench_protocol::StoredObject;

use stablebench_suite::results::Measured;

/// Sums over b-trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// The bytes of all tables and indexes.
    pub bytes: u64,
    /// The bytes of indexes.
    pub index_bytes: u64,
    index_internal_pages: u64,
    index_children: u64,
}

impl Size {
    /// Returns the size of the suite's tables, if the engine reports it. It does not include the
    /// database's own pages and tables of other suites.
    pub fn of(measured: &Measured) -> Option<Self> {
        let objects = objects(measured)?;
        let mut size = Self::default();
        for object in objects {
            size.bytes += object.bytes;
            if object.index {
                size.index_bytes += object.bytes;
                size.index_internal_pages += object.internal_pages;
                size.index_children += object.children;
            }
        }
        Some(size)
    }

    /// Returns the percentage of indexes.
    pub fn index_share(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.index_bytes as f64 * 100.0 / self.bytes as f64)
    }

    /// Returns the mean number of children of an index's internal pages, if there are any.
    pub fn index_fan_out(&self) -> Option<f64> {
        quotient(self.index_children, self.index_internal_pages)
    }
}

/// Returns the mean number of children of internal pages, if there are any.
pub fn fan_out(object: &StoredObject) -> Option<f64> {
    quotient(object.children, object.internal_pages)
}

/// Returns the b-trees of the suite's tables.
pub fn objects(measured: &Measured) -> Option<Vec<&StoredObject>> {
    let stored = measured.detail.as_ref()?.stored.as_ref()?;
    let ours = |object: &&StoredObject| TABLES.contains(&object.table.as_str());
    let objects: Vec<&StoredObject> = stored.objects.iter().filter(ours).collect();
    // Without `dbstat` there are none.
    (!objects.is_empty()).then_some(objects)
}

/// Returns `true` for the link table and its indexes.
pub fn is_of_links(object: &StoredObject) -> bool {
    object.table == LINKS
}

fn quotient(of: u64, to: u64) -> Option<f64> {
    (to > 0).then(|| of as f64 / to as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(table: &str, index: bool, bytes: u64, children: u64, internal: u64) -> StoredObject {
        StoredObject {
            name: String::new(),
            table: table.to_owned(),
            index,
            bytes,
            pages: bytes / 4_096,
            internal_pages: internal,
            overflow_pages: 0,
            children,
            leaf_entries: 0,
            payload_bytes: 0,
            unused_bytes: 0,
            depth: 2,
        }
    }

    #[test]
    fn sums_contain_only_tables_of_the_suite() {
        let mut measured =
            stablebench_suite::results::sample::full().cases.remove(0).measured().cloned();
        let measured = measured.as_mut().unwrap();
        let trees = vec![
            tree("sqlite_schema", false, 4_096, 0, 0),
            tree("users", false, 8_192, 7, 1),
            tree("witch_watch", false, 40_960, 9, 1),
            tree("witch_watch", true, 20_480, 104, 1),
            tree("witch_watch", true, 12_288, 96, 1),
            tree("movies", false, 4_096, 0, 0),
        ];
        measured.detail.as_mut().unwrap().stored.as_mut().unwrap().objects = trees;
        let size = Size::of(measured).unwrap();
        assert_eq!((size.bytes, size.index_bytes), (77_824, 32_768));
        assert_eq!(size.index_share().map(f64::round), Some(42.0));
        assert_eq!(size.index_fan_out(), Some(100.0));
        assert_eq!(Size::default().index_fan_out(), None);
        assert_eq!(Size::default().index_share(), None);
        measured.detail.as_mut().unwrap().stored.as_mut().unwrap().objects.clear();
        assert_eq!(Size::of(measured), None, "an engine without dbstat");
    }
}
