//! A workspace with a domain, and short ways to say things.

use crossdock_links as links;
use db::{Database, Id, Timestamp, Tx};
use links::{
    CaseMode, Content, Destination, Domain, DomainSettings, Host, Link, Name, NewLink, NewOrigin, Place,
};
use links::{Slug, SlugChoice, SourceKey, Text, Workspace};
use rand::SeedableRng;
use rand::rngs::StdRng;

pub(crate) const JOB: Id = Id::from_stored(77);

pub(crate) struct World {
    pub(crate) database: Database,
    pub(crate) workspace: Workspace,
    pub(crate) domain: Domain,
    pub(crate) chance: StdRng,
}

impl World {
    pub(crate) async fn new(database: Database) -> Self {
        let mut tx = database.begin().await.unwrap();
        let (workspace, made) = links::ensure_default_workspace(&mut tx, now()).await.unwrap();
        assert!(made);
        let host = Host::new("go.example.com").unwrap();
        let domain =
            links::add_domain(&mut tx, workspace.id, &host, &DomainSettings::default(), now()).await.unwrap();
        tx.commit().await.unwrap();
        Self { database, workspace, domain, chance: StdRng::seed_from_u64(1) }
    }

    pub(crate) async fn tx(&self) -> Tx {
        self.database.begin().await.unwrap()
    }

    pub(crate) async fn add_domain(&self, host: &str, case_mode: CaseMode) -> Domain {
        let mut tx = self.tx().await;
        let settings = DomainSettings { case_mode, ..DomainSettings::default() };
        let host = Host::new(host).unwrap();
        let domain = links::add_domain(&mut tx, self.workspace.id, &host, &settings, now()).await.unwrap();
        tx.commit().await.unwrap();
        domain
    }

    pub(crate) async fn create(&mut self, slug: &str) -> links::Result<Link> {
        let domain = self.domain.clone();
        self.create_on(&domain, slug, content("https://example.com/")).await
    }

    pub(crate) async fn create_on(
        &mut self,
        domain: &Domain,
        slug: &str,
        content: Content,
    ) -> links::Result<Link> {
        let mut tx = self.tx().await;
        let choice = SlugChoice::Given(self::slug(slug));
        let link = links::create_link(&mut tx, domain, choice, content, now(), &mut self.chance).await?;
        tx.commit().await.unwrap();
        Ok(link)
    }

    pub(crate) async fn link(&self, id: Id) -> links::Result<Link> {
        let mut reader = self.database.read().await.unwrap();
        links::link_by_id(reader.conn(), self.workspace.id, id).await
    }

    pub(crate) async fn resolve(&self, domain: &Domain, slug: &str) -> Option<links::Resolved> {
        let mut reader = self.database.read().await.unwrap();
        let key = domain.settings.case_mode.key(&self::slug(slug)).into_owned();
        links::resolve(reader.conn(), domain.id, &key).await.unwrap()
    }

    /// Inserts and commits; nothing may be lost.
    pub(crate) async fn import(&self, new: &[NewLink]) {
        let mut tx = self.tx().await;
        let lost = links::insert_links(&mut tx, self.workspace.id, new, now()).await.unwrap();
        assert_eq!(lost, []);
        tx.commit().await.unwrap();
    }

    /// A link with one slug, as an import brings it.
    pub(crate) fn new_link(&self, slug: &str) -> NewLink {
        NewLink {
            id: Id::new(),
            content: content(&format!("https://example.com/{slug}")),
            slugs: vec![self.place(slug)],
            origin: Some(self.origin(slug)),
        }
    }

    pub(crate) fn origin(&self, source_id: &str) -> NewOrigin {
        NewOrigin {
            source: SourceKey::new("bitly", source_id).unwrap(),
            domain_id: self.domain.id,
            job_id: JOB,
            source_digest: vec![1, 2, 3],
            source_json: Some(Text::new("{\"a\": \"\\u0000\"}")),
        }
    }

    pub(crate) fn place(&self, slug: &str) -> Place {
        Place { domain_id: self.domain.id, slug: self::slug(slug) }
    }
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_micros(1_769_847_300_123_456)
}

pub(crate) fn slug(text: &str) -> Slug {
    Slug::new(text).unwrap()
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn url(text: &str) -> Destination {
    Destination::new(text).unwrap()
}

pub(crate) fn content(destination: &str) -> Content {
    Content::to(url(destination), now())
}

/// A content with everything set.
pub(crate) fn full() -> Content {
    use links::{Json, RedirectCode};
    let mut geo = links::Geo::default();
    geo.insert("DE", "https://example.de/").unwrap();
    Content {
        title: Some(Text::new("Ünï \"quoted\" \u{1} \n title")),
        notes: Some(Text::new("")),
        folder: Some(name("Folder A")),
        tags: vec![name("b"), name("imported:bitly"), name("Ä")],
        redirect_code: Some(RedirectCode::PermanentRedirect),
        query_passthrough: false,
        enabled: false,
        archived: true,
        expires_at: Some(Timestamp::from_micros(1)),
        expired_url: Some(url("https://example.com/expired")),
        password_protected: true,
        ios_url: Some(url("https://apps.example.com/ios")),
        android_url: Some(url("market://details?id=x")),
        geo: Some(geo.into()),
        utm: Some(Json::new("{\"utm_source\":\"x\"}").unwrap()),
        imported_clicks: Some(i64::MAX),
        external_id: Some(name("order-1")),
        ..content("https://example.com/ü?q=%25&a=b#\\'\"{}")
    }
}
