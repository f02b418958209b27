//! Changing an account while it is served.

use super::{
    account::{Account, NEWEST_AT},
    edits::{Change, Mutation, MutationError, Position},
    link::{Field, Link, Looks},
};

impl Account {
    /// Changes the account while it is served, and gives the id of the link it was about.
    ///
    /// # Errors
    /// [`MutationError`] if there is no such link, or the slug is taken.
    pub fn mutate(&self, mutation: Mutation) -> Result<String, MutationError> {
        match mutation {
            Mutation::Edit { id, destination, title, tags, archived } => {
                self.edit(&id, Change { destination, title, tags, archived })?;
                Ok(id)
            }
            Mutation::Delete { id } => {
                let position = self.existing(&id)?;
                self.edits_mut().deleted.insert(position);
                Ok(id)
            }
            Mutation::Add { destination, slug, title, tags, behind } => {
                let behind = behind.map(|id| self.generated_index(&id).ok_or(MutationError::NoSuchLink(id)));
                let title = title.map_or(Field::Null, Field::Value);
                self.add(slug, behind.transpose()?, destination, title, tags)
            }
        }
    }

    /// Deletes the link at this place, if it is there.
    pub(super) fn delete_at(&self, position: Position) {
        self.edits_mut().deleted.insert(position);
    }

    /// Adds a link: behind a generated one, or on top. Gives its id.
    pub(super) fn add(
        &self,
        slug: Option<String>,
        behind: Option<u64>,
        destination: String,
        title: Field<String>,
        tags: Vec<String>,
    ) -> Result<String, MutationError> {
        let mut edits = self.edits_mut();
        let slug = slug.unwrap_or_else(|| {
            let made_up = (edits.added.len() as u64..).map(|number| self.slugs().added(number));
            made_up
                .into_iter()
                .find(|slug| !edits.added_slugs.contains_key(slug))
                .expect("slugs do not run out")
        });
        let generated =
            self.slugs().index_of(&slug, self.count()).or(self.slugs().index_of_custom(&slug, self.count()));
        if edits.added_slugs.contains_key(&slug) || generated.is_some() {
            return Err(MutationError::SlugTaken(slug));
        }
        let (position, created_at) = match behind {
            Some(index) => (edits.behind(index), self.created_at(index)),
            None => {
                let position = edits.top();
                (position, NEWEST_AT - position.index)
            }
        };
        let added = Link {
            host: self.domain().to_owned(),
            slug: slug.clone(),
            back_halves: Field::Value(Vec::new()),
            destination,
            title,
            tags: Field::Value(tags),
            archived: false,
            created_at,
            expires_at: None,
            fault: None,
            looks: Looks::default(),
        };
        let id = added.id();
        edits.added.insert(position, added);
        edits.added_slugs.insert(slug, position);
        Ok(id)
    }

    fn edit(&self, id: &str, change: Change) -> Result<(), MutationError> {
        let position = self.existing(id)?;
        let mut edits = self.edits_mut();
        if let Some(index) = position.generated_index() {
            let old = edits.changed.entry(index).or_default();
            old.destination = change.destination.or(old.destination.take());
            old.title = change.title.or(old.title.take());
            old.tags = change.tags.or(old.tags.take());
            old.archived = change.archived.or(old.archived);
        } else if let Some(link) = edits.added.get_mut(&position) {
            apply(link, &change);
        }
        Ok(())
    }

    fn existing(&self, id: &str) -> Result<Position, MutationError> {
        let found = self.find(id).filter(|position| !self.edits().deleted.contains(position));
        found.ok_or_else(|| MutationError::NoSuchLink(id.to_owned()))
    }

    /// The place of the link with this id, deleted or not.
    pub(super) fn find(&self, id: &str) -> Option<Position> {
        let (host, slug) = id.split_once('/')?;
        let added = self.edits().added_slugs.get(slug).copied();
        if let Some(position) = added {
            return (host == self.domain()).then_some(position);
        }
        self.generated_index(id).map(Position::generated)
    }

    fn generated_index(&self, id: &str) -> Option<u64> {
        let (host, slug) = id.split_once('/')?;
        self.slugs().index_of(slug, self.count()).filter(|index| self.host(*index) == host)
    }
}

/// Puts what was changed over what was generated.
pub(super) fn apply(link: &mut Link, change: &Change) {
    if let Some(destination) = &change.destination {
        link.destination.clone_from(destination);
        link.fault = link.fault.filter(|fault| !fault.spoils_destination());
    }
    if let Some(title) = &change.title {
        link.title = Field::Value(title.clone());
    }
    if let Some(tags) = &change.tags {
        link.tags = Field::Value(tags.clone());
    }
    if let Some(archived) = change.archived {
        link.archived = archived;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_mends_a_link_that_was_planted_without_a_destination() {
        let account = Account::generate(100, 1).with_faults(&"missing-long-url@3".parse().unwrap());
        let id = account.planted()[0].source_id.clone();
        let edit = Mutation::Edit {
            id,
            destination: Some("https://example.com/".to_owned()),
            title: None,
            tags: None,
            archived: None,
        };
        account.mutate(edit).unwrap();
        assert_eq!(account.planted(), []);
    }

    #[test]
    fn a_deleted_link_cannot_be_deleted_again() {
        let account = Account::generate(10, 1);
        let delete = Mutation::Delete { id: account.id_of(4) };
        account.mutate(delete.clone()).unwrap();
        assert_eq!(account.links(), 9);
        assert_eq!(account.mutate(delete), Err(MutationError::NoSuchLink(account.id_of(4))));
    }

    #[test]
    fn a_slug_that_exists_cannot_be_added() {
        let account = Account::generate(10, 1);
        let add = |slug: &str| Mutation::Add {
            destination: "https://example.com/".to_owned(),
            slug: Some(slug.to_owned()),
            title: None,
            tags: Vec::new(),
            behind: None,
        };
        assert_eq!(account.mutate(add("a/b")).unwrap(), "go.example.com/a/b");
        assert_eq!(account.mutate(add("a/b")), Err(MutationError::SlugTaken("a/b".to_owned())));
        let taken = account.slugs().generated(2);
        assert_eq!(account.mutate(add(&taken)), Err(MutationError::SlugTaken(taken)));
    }
}
