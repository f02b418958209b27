//! Answers in Bitly's forms.

use super::wire;
pub(super) use crate::reply::{Delivery, Reply};

impl Reply {
    /// A page of the list.
    pub(super) fn page(body: Vec<u8>) -> Self {
        Self::bytes(200, "application/json", body)
    }

    /// An error in the vendor's form.
    pub(super) fn error(status: u16, message: &str, resource: &str) -> Self {
        Self::json(status, &wire::error(message, description(message), resource))
    }
}

/// What the vendor says to people for each code.
fn description(message: &str) -> &'static str {
    match message {
        "UNAUTHORIZED" => "The access token is missing, malformed or no longer valid.",
        "FORBIDDEN" => "You are currently forbidden to access this resource.",
        "NOT_FOUND" => "What you are looking for cannot be found.",
        "GONE" => "This resource has been deleted.",
        "METHOD_NOT_ALLOWED" => "The method is not allowed for this resource.",
        "UPGRADE_REQUIRED" => "You must upgrade your account to access this resource.",
        "UNPROCESSABLE_ENTITY" => "We cannot process the content sent to us.",
        "RATE_LIMIT_EXCEEDED" => "You have exceeded the rate limit for this resource.",
        "MONTHLY_LIMIT_EXCEEDED" | "API_USAGE_LIMIT_EXCEEDED" => {
            "You have used up the API calls of this month. They are reset on the first day of the next month."
        }
        "TEMPORARILY_UNAVAILABLE" => "This service is temporarily unavailable. Please try again later.",
        "BAD_GATEWAY" | "GATEWAY_TIMEOUT" => "The service behind this one did not answer.",
        "INTERNAL_ERROR" => "An internal error has occurred.",
        _ => "The request cannot be understood.",
    }
}
