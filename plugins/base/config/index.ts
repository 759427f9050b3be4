export { assetPath, packagePath, readAsset } from '../../../package.ts'
export { type Config, type SharedEnv, basePathOf } from './config.ts'
export { linkedSnippets } from './client-snippets.ts'
export { findChildUser, readEnvironment } from './environment.ts'
export { commandLine, firstLines, FirstWords, furtherLines, shellQuote } from './first-start.ts'
export { explainListenError, isLoopback, localUrl } from './listening.ts'
export {
  type LocalAccess, assertFolder, isSame, newLocalToken, readLocalAccess, removeLocalAccess, storedAt, writeLocalAccess
} from './local-file.ts'
export { trustedProxies, trustsPeer } from './trust-proxy.ts'
