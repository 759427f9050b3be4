import { type Snapshot, StorageError } from '../../../db/store.ts'
import { rpcCode, RuleRefusalError, RpcError } from '../../../protocol/errors.ts'
import { describeJsonAmbiguity } from '../../../protocol/json-ambiguity.ts'
import { argumentsTextOf, DerivedExchange, type Client, type Exchange } from '../../../protocol/exchange.ts'
import type { Catalogue } from '../../../protocol/lists.ts'
import type { Policy } from '../../../schemas/policies.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import {
  serverFingerprint, unknownItemError, type AppliedPolicy, type FinishedCall, type GatewayCall
} from '../../gateway/index.ts'
import { hasCredential, type ItemFilter, type View } from '../../settings/index.ts'
import { extensionsLimits } from '../limits.ts'
import type { PrincipalFacts } from './cel.ts'
import type { CallApprovals } from './approvals.ts'
import { callDigestOf, type CallToApprove } from './call-digest.ts'
import { appliedPolicyOf, decideAbout, type Verdict } from './decision.ts'
import { kindOfRequest, routePathOf, toPrincipalFacts, type RequestedItem } from './facts.ts'
import type { Match } from './rule.ts'
import { Ruleset } from './ruleset.ts'

interface EnforcerDeps {
  /** Returns the settings, with the registered providers added as servers. */
  readonly snapshot: () => Snapshot
  readonly catalogueOf: (provider: string, client: Client) => Catalogue | undefined
  readonly approvals: Pick<CallApprovals, 'useOrRequest'>
  /** Returns the current time, in ms since 1970. */
  readonly now: () => number
}

/** The facts about the caller of a view, and the filter of the items that the policies hide from that caller. */
interface Caller {
  readonly snapshot: Snapshot
  readonly address: string | undefined
  readonly facts: PrincipalFacts
  readonly filter: ItemFilter | undefined
}

/** Applies the policies to requests: hides items, refuses calls, and asks for approval. */
export class PolicyEnforcer {
  readonly #deps: EnforcerDeps
  #policies: Snapshot['policies'] | undefined
  /** The rules compiled from `#policies`. */
  #ruleset = new Ruleset([])
  /** The caller of each view, as last computed. */
  readonly #callers = new WeakMap<View, Caller>()
  /** The digests of calls that were allowed after asking; the key is the `policy` object in the record of the call. */
  readonly #allowed = new WeakMap<AppliedPolicy, string>()
  /**
   * Maps the digests of allowed calls whose servers asked the client for input (MCP 2026-07-28) to the times until
   * which the calls may be continued, in ms since 1970.
   */
  readonly #suspended = new BoundedMap<string, number>(extensionsLimits.approvals.suspended)

  constructor (deps: EnforcerDeps) { this.#deps = deps }

  /** Returns the filter of the items that the policies hide from a view; undefined if no policy hides items. */
  filterOf (view: View, address: string | undefined): ItemFilter | undefined {
    const snapshot = this.#deps.snapshot()
    return this.#rulesetOf(snapshot).listRules.length === 0 ? undefined : this.#callerOf(view, snapshot, address).filter
  }

  /**
   * Decides about a call, and records the policy in `call.policy`. If the policy requires an approval, asks for it.
   * @throws RuleRefusalError for a refused call; RpcError for a hidden item
   */
  onCall (call: GatewayCall): Promise<void> | void {
    const snapshot = this.#deps.snapshot()
    const ruleset = this.#rulesetOf(snapshot)
    if (ruleset.rules.length === 0 || call.failure !== undefined || call.item === undefined) return undefined
    const subject = subjectOf(call.exchange, call.provider, call.item)
    // The gateway's own tools, such as those of `$smart`, are exempt: the items that they list or call are checked.
    if (subject === undefined || !snapshot.servers.has(call.provider)) return undefined
    const verdict = this.#decide(snapshot, ruleset, call.exchange, subject)
    call.policy = appliedPolicyOf(verdict)
    return this.#enforce(call, subject, verdict)
  }

  /** Decides about a subscription to a resource as `onCall` does about a call. @throws the errors of `onCall` */
  onSubscribe (exchange: Exchange<View>, provider: string, uri: string): Promise<void> | void {
    return this.onCall({
      exchange, provider, item: uri, startedAt: 0, trace: undefined, policy: undefined
    })
  }

  /** Remembers the call if it was allowed after asking, and its server then asked the client for input. */
  onDone ({ outcome, policy }: Pick<FinishedCall, 'outcome' | 'policy'>): void {
    const digest = outcome === 'input_required' && policy !== undefined ? this.#allowed.get(policy) : undefined
    if (digest !== undefined) this.#suspended.setNewest(digest, this.#deps.now() + extensionsLimits.approvals.time)
  }

  #rulesetOf ({ policies }: Snapshot): Ruleset {
    if (this.#policies !== policies) {
      this.#policies = policies
      this.#ruleset = new Ruleset(policies.values())
    }
    return this.#ruleset
  }

  #callerOf (view: View, snapshot: Snapshot, address = view.principal.address): Caller {
    const last = this.#callers.get(view)
    if (last?.snapshot === snapshot && last.address === address) return last
    const facts = toPrincipalFacts(snapshot, view.principal, address)
    const filter = this.#rulesetOf(snapshot).filterOf({ principal: facts, route: routePathOf(view) })
    const caller = { snapshot, address, facts, filter }
    this.#callers.set(view, caller)
    return caller
  }

  #decide (snapshot: Snapshot, ruleset: Ruleset, exchange: Exchange<View>, subject: RequestedItem): Verdict {
    const { view, address, client, params } = exchange
    return decideAbout(ruleset, {
      subject,
      principal: this.#callerOf(view.unfiltered ?? view, snapshot, address).facts,
      args: params.arguments,
      argsText: () => argumentsTextOf(exchange),
      route: routePathOf(requestedViewOf(exchange)),
      now: new Date(this.#deps.now())
    }, this.#deps.catalogueOf(subject.server, client))
  }

  #enforce (call: GatewayCall, subject: RequestedItem, { decision, match }: Verdict): Promise<void> | void {
    if (match === undefined || decision === 'allow') return undefined
    if (decision === 'hide') throw unknownItemError(call.exchange)
    if (decision === 'deny') throw new RuleRefusalError('policy', denialOf(match))
    return this.#ask(call, subject, match.rule.policy)
  }

  async #ask (call: GatewayCall, subject: RequestedItem, policy: Policy): Promise<void> {
    const { exchange } = call
    if (!askedMethods.has(exchange.method)) {
      throw new RuleRefusalError(
        'policy', `${reasonFor(policy)}, but it cannot ask here`
      )
    }
    const argsText = argumentsTextOf(exchange)
    if (argsText.length > extensionsLimits.approvals.size) {
      throw new RuleRefusalError('policy', `${reasonFor(policy)}: its arguments are too large to be shown for approval`)
    }
    const ambiguity = describeJsonAmbiguity(argsText)
    if (ambiguity !== undefined) {
      throw new RuleRefusalError(
        'policy', `${reasonFor(policy)}, but it cannot, since ${ambiguity}`
      )
    }
    const { arguments: args } = exchange.params
    const server = serverFingerprint(subject.server, this.#deps.snapshot().servers.get(subject.server)?.config)
    const toApprove: CallToApprove = { principal: exchange.view.principal, subject, server, args, policy }
    const digest = callDigestOf(toApprove)
    if (!this.#isContinued(exchange, digest)) {
      await this.#askForApproval(exchange, toApprove)
      // The rules may have changed while a person was asked.
      const snapshot = this.#deps.snapshot()
      const verdict = this.#decide(snapshot, this.#rulesetOf(snapshot), exchange, subject)
      if (verdict.match?.rule.policy !== policy) {
        call.policy = appliedPolicyOf(verdict)
        await this.#enforce(call, subject, verdict)
        return
      }
    }
    if (call.policy !== undefined) this.#allowed.set(call.policy, digest)
  }

  /**
   * Whether a request continues an allowed call with the input for which the server asked. Then the permission to
   * continue is used up: each round of input allows one such request. Callers without credentials may be different
   * people, so their requests never continue a call.
   */
  #isContinued ({ canSuspend, view, params }: Exchange<View>, digest: string): boolean {
    const { requestState, inputResponses } = params
    if (!canSuspend || !hasCredential(view.principal)) return false
    if (requestState === undefined && inputResponses === undefined) return false
    const until = this.#suspended.get(digest) ?? 0
    this.#suspended.delete(digest)
    return until > this.#deps.now()
  }

  /** Asks the client's user or an approver whether a call may be made. @throws RuleRefusalError unless it may */
  async #askForApproval (exchange: Exchange<View>, call: CallToApprove): Promise<void> {
    const { policy } = call
    const answer = policy.approvers === undefined || policy.approvers.length === 0
      ? await (await import('./ask-client.ts')).askClientForApproval(exchange, call)
      : 'unanswerable'
    if (answer === 'accepted') return
    const why = reasonFor(policy)
    if (answer === 'declined') {
      throw new RuleRefusalError('policy', `${why}, and it was declined; only the user of this client can allow it`)
    }
    if (answer === 'late') {
      throw new RuleRefusalError('policy', `${why}, and nobody answered in time; the user of this client can allow it`)
    }
    // An approval is valid for one caller; callers without credentials cannot be told apart.
    if (!hasCredential(call.principal)) {
      throw new RuleRefusalError(
        'policy', `${why}, but it cannot ask about a caller without credentials; use a key or log in`
      )
    }
    const approval = await this.#useOrRequest(call)
    if (approval === 'approved') return
    const who = approversOf(policy)
    throw new RuleRefusalError('policy', approval.state === 'denied'
      ? `${why}, and it was denied (approval ${approval.id}); ${who} can allow a later call`
      : `${why}: ${who} must allow it within ${extensionsLimits.approvals.time / 60_000} minutes (approval ` +
        `${approval.id}). Then make the same call again`)
  }

  async #useOrRequest (call: CallToApprove): ReturnType<CallApprovals['useOrRequest']> {
    try {
      return await this.#deps.approvals.useOrRequest(call)
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      throw new RpcError(rpcCode.unavailable, 'The approvals cannot be read now; try again later', 'internal')
    }
  }
}

/** The methods for which a person can be asked. Other requests are refused if a policy requires an approval. */
const askedMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

function subjectOf (exchange: Exchange<View>, server: string, name: string): RequestedItem | undefined {
  const kind = kindOfRequest(exchange)
  return kind && { server, kind, name }
}

/** Returns the view of the endpoint that the client calls: for a call made by `call_tool`, the `$smart` view. */
function requestedViewOf (exchange: Exchange<View>): View {
  let first: Exchange = exchange
  while (first instanceof DerivedExchange) first = first.original
  const view = first.view as View
  return view.presentation === 'search' ? view : exchange.view
}

const reasonFor = ({ name, message }: Policy): string =>
  `${message === undefined ? '' : `${message.replace(/(?<![.!?])$/, '.')} `}` +
    `The policy ${JSON.stringify(name)} asks before this call`

function denialOf ({ rule: { policy: { name, message } }, problem }: Match): string {
  if (problem !== undefined) return `The policy ${JSON.stringify(name)} failed, so this call is denied: ${problem}`
  return message ?? `The policy ${JSON.stringify(name)} denies this call`
}

/** Returns the approvers of a call, in words. */
function approversOf ({ approvers = [] }: Policy): string {
  return approvers.length === 0 ? 'an admin' : new Intl.ListFormat('en', { type: 'disjunction' }).format(approvers)
}
