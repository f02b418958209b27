//! What a vendor brings to an import.

use std::sync::Arc;

use async_trait::async_trait;
use engine::{Source, SourceError};

use crate::{Filter, Forecast, Mapper, Token};

/// A vendor: how to reach it, and how to read its records.
#[async_trait]
pub trait Vendor: Send + Sync {
    /// Reads its records.
    fn mapper(&self) -> Arc<dyn Mapper>;

    /// A source over the account that the token opens, narrowed by the filter.
    ///
    /// # Errors
    /// [`SourceError`] if the token or the filter is refused at once.
    async fn source(&self, filter: &Filter, token: Token) -> Result<Arc<dyn Source>, SourceError>;

    /// What an import of this account will need; `None` if the vendor tells nothing beforehand. Costs a few calls itself.
    ///
    /// # Errors
    /// [`SourceError`] for what would stop the import as well.
    async fn forecast(&self, _filter: &Filter, _token: Token) -> Result<Option<Forecast>, SourceError> {
        Ok(None)
    }
}
