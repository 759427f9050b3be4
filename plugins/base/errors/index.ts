export { exemptFromRequestTimeout } from './client-error.ts'
export {
  sendEnvelopeError, sendRpcError, sendOAuthError, oauthPageErrorHandler, pageErrorHandler, toPageError,
  sendPlainHttpError, oauthErrorTitle
} from './handlers.ts'
export { awaitRecordsQuery, errors, invalidMemberError, noSuchError, OAuthError, toStorageHttpError } from './list.ts'
export { type Finding, invalidInputError } from './findings.ts'
