//! TLS from rustls with ring, given to the HTTP library ready-made, so that nothing global is installed.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::error::Error;

/// Trusts Mozilla's authorities, the machine's own (or those of `SSL_CERT_FILE`), and `extra_roots_pem`.
///
/// The machine's matter to companies with a private authority; Mozilla's to containers that have none at all.
/// The machine's are read only if `with_machine_roots`, for the folder may hold hundreds of files.
pub(crate) fn config(with_machine_roots: bool, extra_roots_pem: Option<&str>) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if with_machine_roots {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::debug!(%error, "upstream: some of the machine's certificates cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
    }
    for certificate in CertificateDer::pem_slice_iter(extra_roots_pem.unwrap_or_default().as_bytes()) {
        let added = certificate
            .map_err(|error| error.to_string())
            .and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()));
        added.map_err(|reason| refuse(&format!("the extra root certificates: {reason}")))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.map_err(|error| refuse(&error.to_string()))?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}

fn refuse(reason: &str) -> Error {
    Error::Options { reason: reason.to_owned() }
}
