//! What the suite's tables and indexes take, from what `dbstat` tells of each b-tree.

use stablebench_protocol::StoredObject;
use stablebench_workload::keys::{LINKS, TABLES};

use crate::results::Measured;

/// Sums over b-trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Of all tables and indexes.
    pub bytes: u64,
    /// Of indexes.
    pub index_bytes: u64,
    index_internal_pages: u64,
    index_children: u64,
}

impl Size {
    /// The size of the suite's tables, where the engine has told it; the database's own
    /// pages, and tables of other suites, are not in it.
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

    /// Indexes in per cent of all.
    pub fn index_share(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.index_bytes as f64 * 100.0 / self.bytes as f64)
    }

    /// Children of an internal page of an index, where there is such a page.
    pub fn index_fan_out(&self) -> Option<f64> {
        quotient(self.index_children, self.index_internal_pages)
    }
}

/// Children of an internal page, where there is such a page.
pub fn fan_out(object: &StoredObject) -> Option<f64> {
    quotient(object.children, object.internal_pages)
}

/// The b-trees of the suite's tables.
pub fn objects(measured: &Measured) -> Option<Vec<&StoredObject>> {
    let stored = measured.detail.as_ref()?.stored.as_ref()?;
    let ours = |object: &&StoredObject| TABLES.contains(&object.table.as_str());
    let objects: Vec<&StoredObject> = stored.objects.iter().filter(ours).collect();
    // Without `dbstat` there are none.
    (!objects.is_empty()).then_some(objects)
}

/// Whether it is the link table or an index of it.
pub fn is_of_links(object: &StoredObject) -> bool {
    object.table == LINKS
}

fn quotient(of: u64, to: u64) -> Option<f64> {
    (to > 0).then(|| of as f64 / to as f64)
}
