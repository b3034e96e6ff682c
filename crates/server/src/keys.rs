//! The keys of the subnet and of its only node. They are not secret: they derive from a constant,
//! so that all servers have the same keys and commands with the root key stay valid.

use std::sync::LazyLock;

use candid::Principal;
use ic_certification::certificate::Certificate;
use ic_transport_types::{NodeSignature, QueryResponse, RequestId};
use ic_verify_bls_signature::PrivateKey;
use sha2::{Digest, Sha256};

use crate::tree::{Path, Tree, leb128};
use crate::wire;

const SEED: &str = "stablebench, a local subnet; not a secret";

/// The DER prefix of a BLS12-381 public key of the IC.
const DER: &[u8] =
    b"\x30\x81\x82\x30\x1d\x06\x0d\x2b\x06\x01\x04\x01\x82\xdc\x7c\x05\x03\x01\x02\x01\
    \x06\x0c\x2b\x06\x01\x04\x01\x82\xdc\x7c\x05\x03\x02\x01\x03\x61\x00";

/// The subnet's key, which is the root key, and the node's key.
pub struct Keys {
    root: PrivateKey,
    root_der: Vec<u8>,
    node: ic_ed25519::PrivateKey,
    node_der: Vec<u8>,
}

impl Default for Keys {
    fn default() -> Self {
        Self::from_seed(SEED)
    }
}

/// Signs the certified data of a canister, as a server with one subnet does.
pub fn sign_data(canister: Principal, data: &[u8], time: u64) -> Vec<u8> {
    static KEYS: LazyLock<Keys> = LazyLock::new(Keys::default);
    KEYS.certify_data(&canister, data, time)
}

/// Returns the first hash of the seed that is a key, a number below the order of the group.
fn root_key(seed: &str) -> PrivateKey {
    (0_u64..)
        .map(|number| Sha256::digest([seed.as_bytes(), &number.to_be_bytes()].concat()))
        .find_map(|hash| PrivateKey::deserialize(&hash).ok())
        .unwrap_or_else(|| unreachable!("almost every second hash is a key"))
}

impl Keys {
    /// Derives keys from a text.
    pub fn from_seed(seed: &str) -> Self {
        let node = ic_ed25519::PrivateKey::generate_from_seed(seed.as_bytes());
        let root = root_key(seed);
        Self {
            root_der: [DER, &root.public_key().serialize()].concat(),
            root,
            node_der: node.public_key().serialize_rfc8410_der(),
            node,
        }
    }

    /// Returns the public root key in DER.
    pub fn root(&self) -> &[u8] {
        &self.root_der
    }

    /// Returns the subnet's id.
    pub fn subnet(&self) -> Principal {
        Principal::self_authenticating(&self.root_der)
    }

    /// Returns the node's public key in DER.
    pub fn node(&self) -> &[u8] {
        &self.node_der
    }

    /// Returns the node's id.
    pub fn node_id(&self) -> Principal {
        Principal::self_authenticating(&self.node_der)
    }

    /// Returns a certificate in CBOR that shows the given paths of a state tree.
    pub fn certify(&self, tree: &Tree, paths: &[Path]) -> Vec<u8> {
        let tree = tree.witness(paths);
        let message = [b"\x0Dic-state-root".as_slice(), &tree.digest()].concat();
        let signature = self.root.sign(&message).serialize().to_vec();
        wire::encode(&Certificate { tree, signature, delegation: None })
    }

    /// Returns a certificate of a canister's certified data.
    pub fn certify_data(&self, canister: &Principal, data: &[u8], time: u64) -> Vec<u8> {
        let certified = Tree::node([("certified_data", Tree::leaf(data))]);
        let tree = Tree::node([
            ("time", Tree::leaf(leb128(time))),
            ("canister", Tree::node([(canister.as_slice(), certified)])),
        ]);
        let path = [b"canister".as_slice(), canister.as_slice(), b"certified_data"];
        self.certify(&tree, &[vec![b"time".to_vec()], path.map(<[u8]>::to_vec).to_vec()])
    }

    /// Signs the response to a query.
    pub fn sign_query(
        &self,
        response: &QueryResponse,
        request: RequestId,
        timestamp: u64,
    ) -> NodeSignature {
        let signature = self.node.sign_message(&response.signable(request, timestamp)).to_vec();
        NodeSignature { timestamp, signature, identity: self.node_id() }
    }
}
