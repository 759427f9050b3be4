export { exemptFromRequestTimeout } from './client-error.ts'
export {
  sendEnvelopeError, sendRpcError, sendOAuthError, oauthPageErrorHandler, pageErrorHandler, toPageError, sendToolError,
  oauthErrorTitle
} from './handlers.ts'
export { awaitRecords, errors, invalidAt, noSuchError, OAuthError, toStorageHttpError } from './list.ts'
export { type Finding, invalidInput } from './findings.ts'
