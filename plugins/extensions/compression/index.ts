import { randomUUID } from 'node:crypto'
import fp from 'fastify-plugin'
import { memberOf, withMembers } from '../../../protocol/json.ts'
import { memoized } from '../../../protocol/memoized.ts'
import type { SystemConfig } from '../../../schemas/settings.ts'
import { SystemSections } from '../../../schemas/system.ts'
import { Compressor } from './compressor.ts'
import { Originals, createOriginalsProvider, originalsUriPrefix } from './originals.ts'
import { conformsToSchema } from './output-schema.ts'
import type { ResultCompressionOptions } from './result.ts'
import type { CompressionAnswer, CompressionTask } from './worker.ts'
import { runPeriodically } from '../../base/limits/index.ts'
import { withDefaults } from '../../settings/index.ts'
import { extensionsLimits } from '../limits.ts'

interface Settings { enabled: boolean, options: Omit<ResultCompressionOptions, 'uriPrefix'> }

/** `systemConfig.toolResultCompression`, with defaults for absent and invalid members. */
const settingsOf = memoized(({ toolResultCompression }: SystemConfig): Settings => {
  const { enabled, ...options } =
    withDefaults(SystemSections.properties.toolResultCompression, toolResultCompression) as
      Settings['options'] & { enabled: boolean }
  return { enabled, options }
})

/** The methods that return the result of a tool. In MCP 2026-07-28, `tasks/get` returns it as a member of the task. */
const toolResultMethods: ReadonlySet<string> = new Set(['tools/call', 'tasks/result', 'tasks/get'])

/**
 * Compresses long tool results in the gateway's `onResult` hook, if `toolResultCompression` is enabled. The principal
 * that received a compressed result can read the original for an hour.
 */
export default fp(async (app) => {
  const originals = new Originals(extensionsLimits.compression)
  const reportFailure = (err: unknown): void => { app.log.warn({ err }, 'A result was not compressed') }
  const compressor = new Compressor(reportFailure)
  runPeriodically(app, 60_000, async () => { originals.removeExpired() })
  app.addHook('onClose', async () => { compressor.close() })
  app.gateway.addReader(createOriginalsProvider(originals))
  /** Compresses a result, without `structuredContent` if that would no longer conform to the tool's output schema. */
  const compress = async (
    task: CompressionTask, owner: string, outputSchema: string | undefined
  ): Promise<CompressionAnswer> => {
    const compressed = await compressor.compress(task, owner)
    if (compressed === undefined || outputSchema === undefined) return compressed
    const structured = memberOf(compressed.result, 'structuredContent')
    if (structured === undefined || structured === memberOf(task.result, 'structuredContent')) return compressed
    if (await conformsToSchema(structured, outputSchema, owner, reportFailure)) return compressed
    return await compressor.compress({ ...task, options: { ...task.options, structuredContent: false } }, owner)
  }
  app.gateway.addHook('onResult', ({ exchange, provider, item }, answer) => {
    // In the answer to `tasks/get`, the tool's result is the member `result` of the task.
    const isTaskGet = exchange.method === 'tasks/get'
    const { enabled, options } = settingsOf(app.settings.current.system)
    // Skips short answers: a text has at most as many tokens as bytes, and at most three bytes per UTF-16 unit.
    if (!enabled || !toolResultMethods.has(exchange.method) || answer.length * 3 < options.minTokens) return answer
    // Results of the gateway's own tools are not compressed.
    if (!app.access.snapshot.servers.has(provider)) return answer
    const { principal: { key, kind }, scope } = exchange.view
    // Anonymous callers of open routes cannot read originals, so their results are not compressed.
    if (scope.open === true && kind === 'anonymous') return answer
    const result = isTaskGet ? memberOf(answer, 'result') : answer
    if (result === undefined) return answer
    const task = { result, options: { ...options, uriPrefix: `${originalsUriPrefix}${randomUUID()}/` } }
    const listed = options.structuredContent
      ? app.gateway.catalogueFor(provider, exchange.client)?.lists.tools.find(({ key }) => key === item)
      : undefined
    const outputSchema = listed && memberOf(listed.text, 'outputSchema')
    return compress(task, exchange.client.owner ?? exchange.client.id, outputSchema).then((compressed) => {
      if (compressed === undefined) return answer
      const isKept = compressed.originals.every((original, index) =>
        originals.keep(`${task.options.uriPrefix}${index}`, key, original))
      if (!isKept) return answer
      return isTaskGet ? withMembers(answer, { result: compressed.result }) : compressed.result
    })
  })
}, { name: 'compression', dependencies: ['gateway', 'settings', 'access'] })
