import type { Static } from '@sinclair/typebox'
import { eraOf } from '../../../protocol/era.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import type { ServerConfig } from '../../../schemas/server.ts'
import type { ServerTestResult } from '../../../schemas/server-api.ts'
import { type ItemKind, unmatchedOverrideWarnings } from '../../settings/index.ts'
import type { ProbeResult } from '../../upstream/index.ts'
import { ItemTexts } from './record-json.ts'

/** The result of a test, as `POST /api/servers/test` returns it. */
export type ServerTestOutcome = Omit<Static<typeof ServerTestResult>, ItemKind> & Record<ItemKind, ItemTexts>

/** Creates the result of a test from a probe. @param warnings warnings about the config as sent */
export function toServerTestOutcome (
  { status, error, catalogue, time, ...probe }: ProbeResult, config: ServerConfig, warnings: string[]
): ServerTestOutcome {
  const items = (kind: ItemKind): ItemTexts => new ItemTexts(catalogue?.lists[kind] ?? [], { config }, kind)
  return {
    connected: status === 'connected',
    status,
    error,
    warnings: [...warnings, ...probe.warnings, ...catalogue ? unmatchedOverrideWarnings({ config }, catalogue) : []],
    ...(catalogue ? protocolOf(catalogue) : {}),
    tools: items('tools'),
    prompts: items('prompts'),
    resources: items('resources'),
    skills: items('skills'),
    duration: time
  }
}

/** Returns a message with the outcome and the next step. @param name the name of the server, if it is stored */
export function serverTestMessage ({ connected, status, tools }: ServerTestOutcome, name: string | undefined): string {
  if (connected) return `It connects, and lists ${tools.length} tools`
  if (status !== 'oauth_required') return 'It does not connect'
  const first = name === undefined ? 'store it, and open' : 'open'
  return `It requires a login: ${first} the address in its record (oauth.authorizationUrl)`
}

const protocolOf = (
  { version, serverInfo }: Catalogue
): Pick<ServerTestOutcome, 'protocolVersion' | 'era' | 'serverInfo'> =>
  ({ protocolVersion: version, era: eraOf(version), serverInfo: JSON.parse(serverInfo) as unknown })
