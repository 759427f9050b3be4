export { assetPath, loadOnce, packagePath, readAsset, readAssetBytes, readAssetSync } from '../../../package.ts'
export { type Config, type SharedEnv, basePathOf } from './config.ts'
export { linkedSnippets } from './client-snippets.ts'
export { findChildUser, readEnvironment } from './environment.ts'
export { cliCommand, firstStartText, FirstStartNotice, nextStepsText, shellQuote } from './first-start.ts'
export { explainListenError, isLoopback, loopbackUrl } from './listening.ts'
export {
  type AccessFile, requireWritableFolder, isSameStorage, newLocalToken, readAccessFile, removeAccessFile,
  storageLocation, writeAccessFile
} from './local-access.ts'
export { parseTrustProxy, createTrustedProxyCheck } from './trust-proxy.ts'
