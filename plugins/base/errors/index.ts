export { exemptFromRequestTimeout } from './client-error.ts'
export {
  sendEnvelopeError, sendRpcError, sendOAuthError, oauthPageErrorHandler, pageErrorHandler, toPageError,
  sendPlainHttpError, oauthErrorTitle
} from './handlers.ts'
export { awaitRecords, errors, invalidAt, noSuchError, OAuthError, toStorageHttpError } from './list.ts'
export { type Finding, invalidInputError } from './findings.ts'
