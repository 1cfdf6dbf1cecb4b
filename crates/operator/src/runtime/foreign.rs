//! Kinds of others, which a cluster may have or not.

/// `None` when it is not there, and also when its kind is not installed: that is answered in plain text, which `get_opt`
/// takes for a failure.
pub fn there<T>(answer: kube::Result<T>) -> kube::Result<Option<T>> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn answered(code: u16, message: &str, reason: &str) -> kube::Result<()> {
        let status = Status::failure(message, reason).with_code(code);
        Err(kube::Error::Api(status.boxed()))
    }

    #[test]
    fn an_object_and_a_whole_kind_can_be_absent() {
        let absent = [
            answered(404, "machines \"a\" not found", "NotFound"),
            // As the client makes it from an answer that is not JSON.
            answered(404, "404 page not found", "Failed to parse error data"),
        ];
        for answer in absent {
            assert!(matches!(there(answer), Ok(None)));
        }
        assert!(there(answered(403, "no", "Forbidden")).is_err());
        assert!(matches!(there(Ok(())), Ok(Some(()))));
    }
}
