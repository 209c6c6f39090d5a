"""Reviews: questions to the authenticator and the authorizer, sent by POST and never stored."""
