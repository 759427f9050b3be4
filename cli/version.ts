import { readFileSync } from 'node:fs'

/** The version of the package. */
export const versionOf = (): string => (JSON.parse(
  readFileSync(new URL(import.meta.url.endsWith('.ts') ? '../package.json' : '../../package.json', import.meta.url), 'utf8')
) as { version: string }).version
