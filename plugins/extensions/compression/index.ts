import { randomUUID } from 'node:crypto'
import { Value } from '@sinclair/typebox/value'
import fp from 'fastify-plugin'
import type { SystemConfig } from '../../../schemas/settings.ts'
import { SystemSections } from '../../../schemas/system.ts'
import { Compressor } from './compressor.ts'
import { Originals, originalsProvider, originalsUriPrefix } from './originals.ts'
import type { ResultCompressionOptions } from './result.ts'
import { extensionsLimits } from '../limits.ts'

const Options = SystemSections.properties.toolResultCompression
interface Settings { enabled: boolean, options: Omit<ResultCompressionOptions, 'uriPrefix'> }

const settingsCache = new WeakMap<SystemConfig, Settings>()

/** `systemConfig.toolResultCompression`, with defaults for absent and invalid members. */
function settingsOf (system: SystemConfig): Settings {
  let settings = settingsCache.get(system)
  if (!settings) {
    const stored = Object.entries(system.toolResultCompression ?? {}).filter(([name, value]) => {
      const schema = Options.properties[name as keyof typeof Options.properties]
      return schema !== undefined && Value.Check(schema, value)
    })
    const { enabled, ...options } =
      Value.Default(Options, Object.fromEntries(stored)) as Settings['options'] & { enabled: boolean }
    settingsCache.set(system, settings = { enabled, options })
  }
  return settings
}

/** The methods that return results of tools. */
const toolResultMethods: ReadonlySet<string> = new Set(['tools/call', 'tasks/result'])

/**
 * Compresses long results of tools (`toolResultCompression`) on the gateway's `onResult`. The principal that received a
 * result can read its original for an hour.
 */
export default fp(async (app) => {
  const originals = new Originals(extensionsLimits.compression)
  const compressor = new Compressor((err) => { app.log.warn({ err }, 'A result was not compressed') })
  const expiry = setInterval(() => { originals.removeExpired() }, 60_000).unref()
  app.addHook('onClose', async () => {
    clearInterval(expiry)
    compressor.close()
  })
  app.gateway.addReader(originalsProvider(originals))
  app.gateway.addHook('onResult', ({ exchange, provider }, result) => {
    const { enabled, options } = settingsOf(app.settings.current.system)
    // A text has at most as many tokens as bytes, and a UTF-16 unit has at most three bytes.
    if (!enabled || !toolResultMethods.has(exchange.method) || result.length * 3 < options.minTokens) return result
    // Results of the gateway's own tools are not compressed.
    if (!app.access.snapshot.servers.has(provider)) return result
    const { principal: { key, kind }, scope } = exchange.view
    // An anonymous caller of the open routes cannot read originals.
    if (scope.open === true && kind === 'anonymous') return result
    const task = { result, options: { ...options, uriPrefix: `${originalsUriPrefix}${randomUUID()}/` } }
    return compressor.compress(task, exchange.client.owner ?? exchange.client.id).then((compressed) => {
      if (compressed === undefined) return result
      const isKept = compressed.originals.every((original, index) =>
        originals.keep(`${task.options.uriPrefix}${index}`, key, original))
      return isKept ? compressed.result : result
    })
  })
}, { name: 'compression', dependencies: ['gateway', 'settings', 'access'] })
