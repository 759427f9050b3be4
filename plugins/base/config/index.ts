export { assetPath, packagePath, readAsset, readAssetBytes, readAssetSync } from '../../../package.ts'
export { type Config, type SharedEnv, basePathOf } from './config.ts'
export { linkedSnippets } from './client-snippets.ts'
export { findChildUser, readEnvironment } from './environment.ts'
export { commandLine, firstStartText, FirstStartNotice, nextStepsText, shellQuote } from './first-start.ts'
export { explainListenError, isLoopback, localUrl } from './listening.ts'
export {
  type AccessFile, requireWritableFolder, isSameStorage, newLocalToken, readLocalAccess, removeLocalAccess,
  storageLocation, writeLocalAccess
} from './local-access.ts'
export { trustedProxies, peerTrust } from './trust-proxy.ts'
