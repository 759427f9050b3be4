import fp from 'fastify-plugin'
import { streamMethod } from '../../../protocol/events.ts'
import type { Guard } from '../../../schemas/guards.ts'
import { loadOnce } from '../../base/config/index.ts'
import { errors, invalidMemberError } from '../../base/errors/index.ts'
import { maskConfig, unmask } from '../../base/secrets/index.ts'
import type { GatewayCall, GuardFinding } from '../../gateway/index.ts'
import { OrderedEntityEntries } from '../../settings/index.ts'
import type { DetectedKind } from './detect/mask.ts'
import type { Guards } from './guards.ts'
import { activeGuards } from './rules.ts'
import type { ContentFinding } from './screen.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The configured content guards, for the management API. */
    guards: OrderedEntityEntries<'guards'>
  }
}

/** Returns a guard as shown in responses, with the secret of its webhook masked. */
const toShownGuard = (guard: Guard): Guard => maskConfig(guard) as Guard

/**
 * Checks a sent guard beyond its schema, and replaces a masked secret by the stored one.
 * @param former the stored guard; undefined for a new one
 * @throws InvalidInput
 */
function checkGuard (input: Guard, former: Guard | undefined): Guard {
  const { value, unknown } = unmask(input, former, former && toShownGuard(former))
  const guard = value as Guard
  if (unknown.length > 0) throw new errors.InvalidInput(`"${unknown[0] ?? ''}": write the secret itself, not its mask`)
  if (guard.webhook === undefined && (guard.detect ?? []).length === 0) {
    throw invalidMemberError('body.detect', 'must name something to search for, unless there is a "webhook"')
  }
  const { url } = guard.webhook ?? {}
  if (url !== undefined && !(/^https?:\/\//.test(url) && URL.canParse(url))) {
    throw invalidMemberError('body.webhook.url', 'must be an absolute http or https URL')
  }
  return guard
}

/** Adds a guard's finding to the record of a call. */
function noteFinding (call: GatewayCall, { found, ...guard }: GuardFinding): void {
  const { guards = [] } = call
  const former = guards.find(({ id }) => id === guard.id)
  const all = [...new Set([...former?.found ?? [], ...found])]
  call.guards = [...guards.filter((each) => each !== former), { ...guard, found: all }]
}

/** `app.guards`: content guards, which check arguments, results, errors and notifications in the gateway's hooks. */
export default fp(async (app) => {
  const counts = new Map<DetectedKind, number>()
  const warn = (err: unknown, sentence: string): void => { app.log.warn({ err }, sentence) }
  const report = ({ guard: { id, name, action }, side, server, tool, found, call }: ContentFinding): void => {
    if (call) noteFinding(call, { id, name, action, found })
    for (const kind of found) counts.set(kind, (counts.get(kind) ?? 0) + 1)
    const finding = { guard: { id, name }, action, found, in: side, server, tool: tool ?? undefined }
    app.log.warn(finding, 'a guard found content')
  }
  const active = (): readonly Guard[] => activeGuards(app.settings.current.guards)
  let guards: Guards | undefined
  const load = loadOnce(async () => {
    const [{ Guards: GuardsClass }, { ContentScreener }, { GuardWebhooks }] =
      await Promise.all([import('./guards.ts'), import('./screen.ts'), import('./webhooks.ts')])
    guards = new GuardsClass({
      active,
      screen: new ContentScreener({ report, warn }),
      webhooks: new GuardWebhooks({ snapshot: () => app.settings.current, outbound: app.outbound, warn })
    })
    return guards
  })
  /**
   * Applies the guards. Their code is loaded when it is first needed.
   * @param unguarded the result if no guard is enabled
   * @param isLasting whether to apply the guards even if none is enabled, since one may be enabled during the request
   */
  const applyGuards = <Result>(
    unguarded: Result, apply: (by: Guards) => Result | Promise<Result>, isLasting = false
  ): Result | Promise<Result> => {
    if (active().length === 0 && !isLasting) return unguarded
    return guards === undefined ? load().then(apply) : apply(guards)
  }
  app.gateway.addHook('onCall', (call) =>
    applyGuards(undefined, (by) => by.onCall(call), call.exchange.method === streamMethod))
  app.gateway.addHook('onSubscribe', (exchange, server, uri) =>
    applyGuards(undefined, (by) => by.onSubscribe(exchange, server, uri)))
  app.gateway.addHook('onOutput', (call, result) => applyGuards(result, (by) => by.onOutput(call, result)))
  app.gateway.addHook('onError', (call, error) => applyGuards(error, (by) => by.onError(call, error)))
  app.gateway.addHook('onNotification', (server, paramsText) =>
    applyGuards<string | undefined>(paramsText, (by) => by.onNotification(server, paramsText)))
  app.decorate('guards', new OrderedEntityEntries(app.settings, 'guards', {
    noun: 'guard',
    check: checkGuard,
    show: toShownGuard,
    warn: async (guard) => (await import('../references.ts')).guardReferenceWarnings(guard, app)
  }))
  const total = (): number => [...counts.values()].reduce((sum, count) => sum + count, 0)
  app.metrics.count('toolhub_guard_findings_total', 'Texts in which a guard on content found something', total)
}, { name: 'guards', dependencies: ['access', 'gateway', 'settings', 'outbound', 'metrics'] })
