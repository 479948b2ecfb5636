//! XML bodies of a store's responses.

use serde::Deserialize;

/// A page of a listing, from any store.
#[derive(Debug)]
pub(super) struct Page {
    /// Keys and lengths in bytes.
    pub objects: Vec<(String, u64)>,
    /// Token of the next page, if there is one.
    pub next: Option<String>,
}

/// A page of a listing from S3.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Listing {
    #[serde(rename = "Contents", default)]
    pub contents: Vec<Content>,
    #[serde(rename = "NextContinuationToken")]
    pub next: Option<String>,
}

impl From<Listing> for Page {
    fn from(listing: Listing) -> Self {
        let objects = listing.contents.into_iter().map(|one| (one.key, one.size)).collect();
        Self { objects, next: listing.next }
    }
}

/// An object in a listing.
#[derive(Debug, Deserialize)]
pub(super) struct Content {
    #[serde(rename = "Key")]
    pub key: String,
    #[serde(rename = "Size")]
    pub size: u64,
}

/// A multipart upload that was started.
#[derive(Debug, Deserialize)]
pub(super) struct Begun {
    #[serde(rename = "UploadId")]
    pub upload_id: String,
}

/// A multipart upload that was completed.
#[derive(Debug, Deserialize)]
pub(super) struct Completed {
    #[serde(rename = "ETag")]
    pub _etag: String,
}

/// A page of a listing of multipart uploads.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Uploads {
    #[serde(rename = "Upload", default)]
    pub uploads: Vec<Upload>,
}

/// An unfinished multipart upload.
#[derive(Debug, Deserialize)]
pub(super) struct Upload {
    #[serde(rename = "Key")]
    pub key: String,
    #[serde(rename = "UploadId")]
    pub upload_id: String,
}

/// The body of an error response.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Problem {
    #[serde(rename = "Code", default)]
    pub code: String,
    #[serde(rename = "Message", default)]
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let text = "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://x\"><Name>b</Name>\
            <IsTruncated>true</IsTruncated><Contents><Key>a&amp;b</Key><Size>3</Size>\
            <Owner><ID>1</ID></Owner></Contents><Contents><Key>c</Key><Size>0</Size></Contents>\
            <NextContinuationToken>t</NextContinuationToken></ListBucketResult>";
        let listing: Listing = quick_xml::de::from_str(text).unwrap();
        let keys: Vec<_> = listing.contents.iter().map(|one| (&*one.key, one.size)).collect();
        assert_eq!((keys, listing.next.as_deref()), (vec![("a&b", 3), ("c", 0)], Some("t")));
        let empty: Listing = quick_xml::de::from_str("<ListBucketResult/>").unwrap();
        assert!(empty.contents.is_empty() && empty.next.is_none());
        let error = "<Error><Code>InternalError</Code><Message>later</Message></Error>";
        assert!(quick_xml::de::from_str::<Completed>(error).is_err());
        assert_eq!(quick_xml::de::from_str::<Problem>(error).unwrap().code, "InternalError");
    }
}
