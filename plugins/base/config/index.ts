export { assetPath, readAsset } from './assets.ts'
export { findChildUser } from './child-user.ts'
export { type Config, type SharedEnv, basePathOf } from './config.ts'
export { readEnvironment } from './environment.ts'
export { commandLine, firstLines, furtherLines, localUrl, shellQuote } from './first-start.ts'
export { FirstWords } from './first-words.ts'
export { explainListenError } from './listen-error.ts'
export {
  type LocalAccess, assertFolder, isSame, newLocalToken, readLocalAccess, removeLocalAccess, storedAt,
  writeLocalAccess
} from './local-file.ts'
export { isLoopback } from './loopback.ts'
export { trustedProxies, trustsPeer } from './trust-proxy.ts'
