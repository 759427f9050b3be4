import type { SystemSections } from '../../schemas/system.ts'
import { bytesOf } from '../body/index.ts'
import { errors } from '../errors/list.ts'
import { isMask } from '../secrets/mask.ts'

/** Headers that mean something else already, so that a bearer key in them would be misread, or sent on. */
const takenHeaders = new Set([
  'cookie',
  'host',
  'origin',
  'content-type',
  'content-length',
  'content-encoding',
  'accept',
  'connection',
  'transfer-encoding',
  'upgrade',
  'x-auth-token',
  'x-session-id',
  'mcp-session-id',
  'mcp-protocol-version',
  'last-event-id'
])

const isAddress = (text: string | null | undefined): boolean =>
  text == null || text === '' || (!/\p{Cc}/u.test(text) && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol))

/** What a schema cannot say of the system configuration. @param migrated whether there was a `bearerAuthKey`, which became a key @throws InvalidInput */
export function check (sent: SystemSections, migrated: boolean): void {
  const wrong = (path: string, why: string): Error => new errors.InvalidInput(`"${path}": ${why}`)
  // A section may be null: back to its defaults.
  const [routing, install, smartRouting, mcpRouter] = [
    sent.routing ?? {},
    sent.install ?? {},
    sent.smartRouting ?? {},
    sent.mcpRouter ?? {}
  ]
  const header = routing.bearerAuthHeaderName?.toLowerCase()
  if (header !== undefined && (takenHeaders.has(header) || header.startsWith('x-forwarded-'))) {
    throw wrong('routing.bearerAuthHeaderName', 'this header means something else already; choose another, as X-API-Key')
  }
  if (routing.jsonBodyLimit != null && !(bytesOf(routing.jsonBodyLimit) >= 1_024 && bytesOf(routing.jsonBodyLimit) <= 256 * 1024 * 1024)) {
    throw wrong('routing.jsonBodyLimit', 'expected between 1kb and 256mb')
  }
  if (routing.bearerAuthKey && migrated) {
    throw wrong('routing.bearerAuthKey', 'it became a bearer key once, and does not again; make a key with POST /api/auth/keys')
  }
  const addresses = {
    'install.baseUrl': install.baseUrl,
    'install.npmRegistry': install.npmRegistry,
    'install.pythonIndexUrl': install.pythonIndexUrl,
    'smartRouting.llmProviderBaseUrl': smartRouting.llmProviderBaseUrl,
    'mcpRouter.baseUrl': mcpRouter.baseUrl
  }
  for (const [path, address] of Object.entries(addresses)) {
    if (!isMask(address) && !isAddress(address)) throw wrong(path, 'expected an absolute http or https address')
  }
  // It is told to everybody, and paths are put behind it.
  if (install.baseUrl && !isMask(install.baseUrl) && /[?#]|^[^/]*\/*[^/]*@/.test(install.baseUrl)) {
    throw wrong('install.baseUrl', 'expected an address without user, query and fragment')
  }
}

/** A mask that came back for a secret whose target is another one now would carry the secret there. @throws InvalidInput */
export function checkTargets (sent: SystemSections, stored: SystemSections, next: SystemSections): void {
  const targets = [
    [
      'smartRouting',
      'llmProviderApiKey',
      sent.smartRouting?.llmProviderApiKey,
      stored.smartRouting?.llmProviderBaseUrl,
      next.smartRouting?.llmProviderBaseUrl
    ],
    ['mcpRouter', 'apiKey', sent.mcpRouter?.apiKey, stored.mcpRouter?.baseUrl, next.mcpRouter?.baseUrl]
  ] as const
  for (const [section, secret, value, before, after] of targets) {
    if (isMask(value) && before !== after) {
      throw new errors.InvalidInput(`"${section}.${secret}": the address changed, so the masked secret must be sent anew`)
    }
  }
}
