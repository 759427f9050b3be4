import type { SystemSections } from '../../../schemas/system.ts'
import { parseSize } from '../../base/body/index.ts'
import { errors } from '../../base/errors/index.ts'
import { containsMask } from '../../base/secrets/index.ts'

/** Headers with another meaning, in which a bearer key would be misread, or forwarded to a server. */
const reservedHeaders = new Set([
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

const isHttpUrl = (text: string): boolean =>
  !/\p{Cc}/u.test(text) && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

/** Bounds of `routing.jsonBodyLimit`, in bytes. */
const bodyLimit = { min: 1_024, max: 256 * 1024 * 1024 }

/** Receives the path of an invalid member, and a message. */
export type ReportInvalidMember = (path: string, message: string) => void

/** Checks what the schema of the system configuration cannot express. @param report called for each invalid member */
export function checkSections (sent: SystemSections, report: ReportInvalidMember): void {
  // A section may be null, which resets it to its defaults.
  const [routing, install, smartRouting, mcpRouter, notifications] = [
    sent.routing ?? {},
    sent.install ?? {},
    sent.smartRouting ?? {},
    sent.mcpRouter ?? {},
    sent.notifications ?? {}
  ]
  const header = routing.bearerAuthHeaderName?.toLowerCase()
  if (header !== undefined && (reservedHeaders.has(header) || header.startsWith('x-forwarded-'))) {
    report('routing.bearerAuthHeaderName', 'this header already has another meaning; choose another one, for ' +
      'example X-API-Key')
  }
  if (routing.jsonBodyLimit != null) {
    const bytes = parseSize(routing.jsonBodyLimit)
    if (!(bytes >= bodyLimit.min && bytes <= bodyLimit.max)) {
      report('routing.jsonBodyLimit', 'expected between 1kb and 256mb')
    }
  }
  const addresses = {
    'install.baseUrl': install.baseUrl,
    'install.npmRegistry': install.npmRegistry,
    'install.pythonIndexUrl': install.pythonIndexUrl,
    'smartRouting.llmProviderBaseUrl': smartRouting.llmProviderBaseUrl,
    'mcpRouter.baseUrl': mcpRouter.baseUrl,
    'notifications.url': notifications.url
  }
  for (const [path, address] of Object.entries(addresses)) {
    if (address && !containsMask(address) && !isHttpUrl(address)) {
      report(path, 'expected an absolute http or https address')
    }
  }
  const { dbUrl } = smartRouting
  if (dbUrl && !containsMask(dbUrl) && !dbUrl.includes('${') && !/^(postgres(ql)?|pglite):\/\//.test(dbUrl)) {
    report('smartRouting.dbUrl', 'expected postgres://… or pglite://<folder>')
  }
  // `install.baseUrl` is public, and paths are appended to it: no credentials, query or fragment.
  if (install.baseUrl && !containsMask(install.baseUrl) && /[?#]|^[^/]*\/*[^/]*@/.test(install.baseUrl)) {
    report('install.baseUrl', 'expected an address without user, query and fragment')
  }
}

/**
 * Checks that no stored secret is kept, by its mask or because it is absent, while the address that it is sent to
 * changes: otherwise it would be sent to the new address. A first address is no change, since a secret without an
 * address was never sent anywhere.
 * @param sent the sent members
 * @param stored the configuration before the change
 * @param next the configuration after it
 * @throws InvalidInput
 */
export function checkMaskedSecretTargets (sent: SystemSections, stored: SystemSections, next: SystemSections): void {
  const targets = [
    [
      'smartRouting',
      'llmProviderApiKey',
      sent.smartRouting?.llmProviderApiKey,
      next.smartRouting?.llmProviderApiKey,
      stored.smartRouting?.llmProviderBaseUrl,
      next.smartRouting?.llmProviderBaseUrl
    ],
    [
      'mcpRouter',
      'apiKey',
      sent.mcpRouter?.apiKey,
      next.mcpRouter?.apiKey,
      stored.mcpRouter?.baseUrl,
      next.mcpRouter?.baseUrl
    ]
  ] as const
  for (const [section, secret, sentSecret, nextSecret, before, after] of targets) {
    const isKept = sentSecret === undefined ? Boolean(nextSecret) : containsMask(sentSecret)
    if (isKept && before && before !== after) {
      throw new errors.InvalidInput(
        `"${section}.${secret}": the address changed, so the secret must be sent again (null removes it)`
      )
    }
  }
}
