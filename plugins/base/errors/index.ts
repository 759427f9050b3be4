export { refuseConnection } from './client-error.ts'
export {
  envelope, jsonRpc, oauthError, oauthPageError, pageError, toldError, toolError, unanswered
} from './handlers.ts'
export { askedRecords, errors, noSuch, OAuthError, storageFault } from './list.ts'
