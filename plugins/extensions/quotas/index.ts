import fp from 'fastify-plugin'
import type { UsageCounts } from '../../../db/ports/usage.ts'
import { RuleRefusalError } from '../../../protocol/errors.ts'
import { memberOf } from '../../../protocol/json.ts'
import type { Quota } from '../../../schemas/quotas.ts'
import { invalidMemberError } from '../../base/errors/index.ts'
import { runPeriodically } from '../../base/limits/index.ts'
import { WorkerPool } from '../../base/threads/index.ts'
import type { GatewayCall } from '../../gateway/index.ts'
import { toBearerKeyIdentity, OrderedEntityEntries, type Principal } from '../../settings/index.ts'
import { isRecordableCall, callerNameOf } from '../activities/describe.ts'
import { extensionsLimits } from '../limits.ts'
import { Quotas } from './quotas.ts'
import { toolOf } from './targets.ts'
import { UsageRecorder } from './usage.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The configured quotas, for the management API. */
    quotas: OrderedEntityEntries<'quotas'>
    /** The usage counters. `read` returns the usage that a principal may see; see `UsageRecorder.read`. */
    usage: {
      read: (principal: Principal, query: Parameters<UsageRecorder['read']>[1]) => ReturnType<UsageRecorder['read']>
    }
  }
}

/** Estimates the number of tokens of a result whose tokens are not counted exactly. */
const estimateTokens = (text: string): number => Math.ceil(text.length / 4)
/** The methods whose calls quotas count. */
const countedMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** Whether an answer contains the result of a task. The call that began the task was counted before. */
const isTaskResult = ({ exchange: { method } }: GatewayCall, answer: string): boolean =>
  method === 'tasks/result' || (method === 'tasks/get' && memberOf(answer, 'result') !== undefined)

/** Whether there is an answer whose tokens count as usage. */
const hasCountedTokens = (call: GatewayCall, answer: string | undefined): answer is string =>
  answer !== undefined && (countedMethods.has(call.exchange.method) || isTaskResult(call, answer))

/** Checks a quota beyond its schema. @throws InvalidInput */
function checkQuota (quota: Quota): Quota {
  const { calls, resultTokens, target } = quota
  if (calls === undefined && resultTokens === undefined) {
    throw invalidMemberError('body.calls', 'is required, unless there is "resultTokens"')
  }
  if (target.tool !== undefined && target.server === undefined) {
    throw invalidMemberError('body.target.server', 'is required with "target.tool"')
  }
  return quota
}

/** `app.quotas` and `app.usage`: limits calls and the tokens of results, and counts usage. */
export default fp<{ usage: UsageCounts }>(async (app, { usage: store }) => {
  const { tokenTime, tokenHeap: heap, tokenIdle: idle } = extensionsLimits.quotas
  let isFailing = false
  const write = async (): Promise<void> => {
    try {
      await usage.flush()
      isFailing = false
    } catch (err) {
      if (!isFailing) app.log.warn({ err }, 'Usage cannot be written now; the gateway tries again')
      isFailing = true
    }
  }
  const pool = new WorkerPool({ threads: 1, heap, idle })
  const usage = new UsageRecorder(store, Date.now)
  const quotas = new Quotas({
    counters: app.counters,
    snapshot: () => app.settings.current,
    now: Date.now,
    reportExhausted: ({ id, name }, freeAt) => {
      app.log.warn({ quota: { id, name }, freeAt }, 'a quota is used up')
      app.notifications.send('quota', { quota: { id, name }, freeAt: freeAt.toISOString() })
    }
  })
  const createdAtOf = (username: string): string | undefined => app.settings.current.users.get(username)?.createdAt
  /** The number of tokens of each result whose tokens were counted for a quota, by exchange. */
  const tokens = new WeakMap<GatewayCall['exchange'], number>()
  const countTokens = async ({ exchange: { client } }: GatewayCall, text: string): Promise<number> => {
    const owner = client.owner ?? client.id
    return await pool.run<number>('plugins/extensions/quotas/worker', text, { owner, time: tokenTime })
      .catch(() => estimateTokens(text))
  }

  app.gateway.addHook('onCall', (call) => countedMethods.has(call.exchange.method) ? quotas.take(call) : undefined)
  const countResult = (call: GatewayCall, result: string): string | Promise<string> => {
    if (!quotas.countsTokens(call)) return result
    return countTokens(call, result).then(async (tokenCount) => {
      tokens.set(call.exchange, tokenCount)
      await quotas.addTokens(call, tokenCount)
      return result
    })
  }
  app.gateway.addHook('onResult', (call, result) => {
    if (countedMethods.has(call.exchange.method)) return countResult(call, result)
    if (!isTaskResult(call, result)) return result
    const waiting = quotas.take(call, true)
    return waiting === undefined ? countResult(call, result) : waiting.then(() => countResult(call, result))
  })
  app.gateway.addHook('onDone', (call) => {
    const { exchange, exchange: { view: { principal } }, provider, outcome, answer, error, isToolError } = call
    if (outcome === 'input_required') return quotas.refund(call)
    const isCall = isRecordableCall(call)
    const resultTokens = tokens.get(exchange) ?? (hasCountedTokens(call, answer) ? estimateTokens(answer) : undefined)
    if ((!isCall && resultTokens === undefined) || error instanceof RuleRefusalError) return
    const user = callerNameOf(principal) ?? ''
    usage.count({
      user,
      key: toBearerKeyIdentity(principal).keyId ?? '',
      server: provider,
      tool: toolOf(call) ?? '',
      errors: isCall && (error !== undefined || isToolError) ? 1 : 0,
      resultTokens: resultTokens ?? 0
    }, isCall ? 1 : 0, createdAtOf(user))
  })
  app.decorate('quotas', new OrderedEntityEntries(app.settings, 'quotas', {
    noun: 'quota',
    check: checkQuota,
    warn: async (quota) => (await import('../references.ts')).quotaReferenceWarnings(quota, app)
  }))
  app.decorate('usage', {
    read: async (principal, query) => await usage.read(principal, query, createdAtOf(principal.username ?? ''))
  })
  // Saved usage must be loaded before the first call is counted.
  await store.load().catch((err: unknown) => { app.log.warn({ err }, 'The saved usage cannot be read') })
  runPeriodically(app, extensionsLimits.usage.pause, write)
  app.addHook('onClose', async () => {
    pool.close()
    await write()
  })
}, { name: 'quotas', dependencies: ['access', 'base', 'gateway', 'settings', 'notifications'] })
