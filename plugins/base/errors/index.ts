export { exemptFromRequestTimeout } from './client-error.ts'
export {
  sendEnvelopeError, sendRpcError, sendOAuthError, oauthPageErrorHandler, pageErrorHandler, preparePageError,
  sendPlainHttpError, oauthErrorTitle
} from './handlers.ts'
export {
  awaitActivityOrAuditQuery, errors, invalidMemberError, noSuchError, OAuthError, toStorageHttpError
} from './list.ts'
export { type Finding, invalidInputError } from './findings.ts'
export { listNames } from './list-names.ts'
