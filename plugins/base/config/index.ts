export { assetPath, readAsset, readAssetSync } from '../../../package.ts'
export { type Config, type SharedEnv, basePathOf } from './config.ts'
export { findChildUser, readEnvironment } from './environment.ts'
export { commandLine, firstLines, FirstWords, furtherLines, shellQuote } from './first-start.ts'
export { explainListenError, isLoopback, localUrl } from './listening.ts'
export {
  type LocalAccess, assertFolder, isSame, newLocalToken, readLocalAccess, removeLocalAccess, storedAt, writeLocalAccess
} from './local-file.ts'
export { trustedProxies, trustsPeer } from './trust-proxy.ts'
