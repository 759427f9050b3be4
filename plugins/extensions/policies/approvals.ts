import { randomUUID } from 'node:crypto'
import type { Approval, Approvals, StoredApproval } from '../../../db/ports/approvals.ts'
import type { Snapshot } from '../../../db/store.ts'
import type { Policy } from '../../../schemas/policies.ts'
import { RuleRefusalError } from '../../../protocol/errors.ts'
import { errors, noSuchError } from '../../base/errors/index.ts'
import { Semaphore } from '../../base/limits/index.ts'
import { toBearerKeyIdentity, isOfFormerAccount, type Principal, teamMembers } from '../../settings/index.ts'
import { callerNameOf, operatorUsername, usernameOf } from '../activities/describe.ts'
import { extensionsLimits } from '../limits.ts'
import { callDigestOf, type CallToApprove } from './call-digest.ts'

/** The state of an approval. `expired`: it was neither denied nor used in time. */
export type ApprovalState = Approval['state'] | 'expired'

/** An approval in a response of the management API. Times are in ISO 8601. */
export interface ShownApproval {
  readonly id: string
  readonly state: ApprovalState
  readonly username: string
  readonly server: string
  readonly tool: string
  readonly kind: Approval['kind']
  readonly arguments: unknown
  readonly policy: Approval['policy']
  readonly createdAt: string
  readonly expiresAt: string
  readonly decidedBy?: string
  /** Whether the call that was approved has run. */
  readonly isUsed?: boolean
}

interface ApprovalDeps {
  readonly store: Approvals
  /** Returns the current settings. */
  readonly snapshot: () => Pick<Snapshot, 'keys' | 'policies' | 'teams' | 'users'>
  /** Whether a server has this name. */
  readonly isServer: (name: string) => boolean
  /** Sends a new approval to the operator's webhook. */
  readonly notify: (approval: ShownApproval) => void
  /** Returns the current time, in ms since 1970. */
  readonly now: () => number
}

/**
 * Keeps the approvals of calls. A call that has no approval yet is refused. When the caller repeats the call after the
 * approval, the call runs and uses up the approval.
 */
export class CallApprovals {
  readonly #deps: ApprovalDeps
  /** Makes the requests of one caller wait for each other, so that the limit of pending approvals is exact. */
  readonly #requests = new Semaphore({ places: Infinity, perOwner: 1 })
  #changes = 0

  constructor (deps: ApprovalDeps) { this.#deps = deps }

  /** The number of approvals that were requested, decided or used on this replica since its start. */
  get changeCount (): number { return this.#changes }

  /**
   * Uses the approval of a call, or requests one.
   * @returns `approved` (once per approval), or the approval that is pending or denied
   * @throws StorageError; RuleRefusalError if no approval can be requested
   */
  async useOrRequest (call: CallToApprove): Promise<'approved' | Pick<Approval, 'id' | 'state'>> {
    const digest = callDigestOf(call)
    return await this.#use(digest) ?? await this.#request(call, digest)
  }

  /** Uses the approval of a call. @returns as `useOrRequest`; undefined if no approval is open */
  async #use (digest: string): Promise<'approved' | Approval | undefined> {
    for (const stored of await this.#deps.store.list(digest)) {
      const { approval } = stored
      if (!this.#isOpen(approval)) continue
      if (approval.state !== 'approved') return approval
      if (!this.#isByApprover(approval)) continue
      const used: Approval = { ...approval, isUsed: true }
      // If equal calls arrive at the same time, also at different replicas, only one of them uses the approval.
      if (await this.#replace(stored, used)) return 'approved'
    }
    return undefined
  }

  /** Checks the number of an owner's calls that wait for a decision. @throws RuleRefusalError if it is too high */
  async #checkPendingLimit (owner: string, { name }: Policy): Promise<void> {
    const { pending } = extensionsLimits.approvals
    const { policies } = this.#deps.snapshot()
    const waiting = (await this.#deps.store.list()).filter(({ approval }) => approval.owner === owner &&
      this.#stateOf(approval) === 'pending' && policies.has(approval.policy.id) && this.#deps.isServer(approval.server))
    if (waiting.length < pending) return
    throw new RuleRefusalError('policy', `The policy ${JSON.stringify(name)} asks before this call, and ${pending} ` +
      'of your calls are already waiting for a decision')
  }

  /**
   * Requests an approval, unless one is open by now.
   * @throws RuleRefusalError if the arguments are too large to show, or too many calls of the caller wait
   */
  async #request (
    { principal, subject, args, policy }: CallToApprove, digest: string
  ): Promise<'approved' | Approval> {
    const shownArgs = withTruncatedTexts(args ?? {})
    if (subject.name.length + shownArgs.length > extensionsLimits.approvals.stored) {
      throw new RuleRefusalError('policy', `The policy ${JSON.stringify(policy.name)} asks before this call: its ` +
        'arguments are too large to be shown for approval')
    }
    const owner = principal.username === undefined ? principal.key : `user ${principal.username}`
    const release = await this.#requests.take(owner, false)
    try {
      // An equal call that arrived at the same time may have requested the approval already.
      const other = await this.#use(digest)
      if (other !== undefined) return other
      await this.#checkPendingLimit(owner, policy)
      return await this.#add({ principal, subject, policy }, { digest, owner, shownArgs })
    } finally {
      release()
    }
  }

  async #add (
    { principal, subject, policy }: Pick<CallToApprove, 'principal' | 'subject' | 'policy'>,
    { digest, owner, shownArgs }: { digest: string, owner: string, shownArgs: string }
  ): Promise<Approval> {
    const createdAt = this.#deps.now()
    const username = callerNameOf(principal) ?? ''
    const approval: Approval = {
      id: randomUUID(),
      state: 'pending',
      digest,
      principal: principal.key,
      owner,
      callers: [...usersBehind(this.#deps.snapshot(), principal)],
      username,
      server: subject.server,
      tool: subject.name,
      kind: subject.kind,
      arguments: shownArgs,
      policy: { id: policy.id, name: policy.name },
      createdAt,
      expiresAt: createdAt + extensionsLimits.approvals.time
    }
    await this.#deps.store.add(approval, extensionsLimits.approvals.kept)
    this.#changes++
    this.#deps.notify(this.#show(approval))
    return approval
  }

  /**
   * Lists the approvals that a principal may decide, newest first.
   * @param state the state to list; undefined: all states
   * @param limit max number of approvals; if there are more, only the newest are returned
   * @throws Forbidden if the principal may not decide about any calls
   */
  async list (principal: Principal, state?: ApprovalState, limit = 100): Promise<ShownApproval[]> {
    this.#requireApprover(principal)
    const all = await this.#deps.store.list()
    return all
      .filter(({ approval }) => this.#canDecide(principal, approval) &&
        (state === undefined || this.#stateOf(approval) === state))
      .slice(0, limit).map(({ approval }) => this.#show(approval))
  }

  /** Returns the ids of the approvals that wait for a principal's decision; none if the principal may not decide. */
  async idsWaitingFor (principal: Principal): Promise<ReadonlySet<string>> {
    if (!this.canApprove(principal)) return new Set()
    const all = await this.#deps.store.list()
    return new Set(all.flatMap(({ approval }) => this.#canDecide(principal, approval) &&
      !this.#isOwn(principal, approval) && this.#stateOf(approval) === 'pending'
      ? approval.id
      : []))
  }

  /**
   * Approves or denies a call. A decision can be changed until the call runs or the approval expires.
   * @param id the id of the approval
   * @returns the approval, and its former state
   * @throws Forbidden for the principal's own call, and if the principal may not decide about any calls; NoSuch;
   *   Duplicate if the same decision was made before, or if it is too late to decide
   */
  async decide (
    principal: Principal, id: string, state: 'approved' | 'denied'
  ): Promise<{ readonly decided: ShownApproval, readonly former: ApprovalState }> {
    this.#requireApprover(principal)
    const stored = await this.#deps.store.find(id)
    if (stored === undefined || !this.#canDecide(principal, stored.approval)) throw noSuchError('approval', id)
    const { approval } = stored
    if (this.#isOwn(principal, approval)) {
      throw new errors.Forbidden('You cannot decide about your own call, or about a call with a key that you created ' +
        'or that your team owns')
    }
    const decided: Approval = { ...approval, state, decidedBy: usernameOf(principal) ?? '' }
    const isNew = this.#isOpen(approval) && approval.state !== state
    if (!isNew || !(await this.#replace(stored, decided))) {
      throw new errors.Duplicate('This approval was already decided, or has expired')
    }
    return { decided: this.#show(decided), former: approval.state }
  }

  /** Stores a changed approval. @returns false if it was changed since it was read */
  async #replace (stored: StoredApproval, next: Approval): Promise<boolean> {
    const isReplaced = await this.#deps.store.replace(stored, next, extensionsLimits.approvals.kept)
    this.#changes++
    return isReplaced
  }

  /** Whether a principal may decide about some calls: as an admin, or as a user whom a policy names as an approver. */
  canApprove ({ isAdmin, username }: Principal): boolean {
    if (isAdmin) return true
    for (const { approvers = [] } of this.#deps.snapshot().policies.values()) {
      if (username !== undefined && approvers.includes(username)) return true
    }
    return false
  }

  /**
   * Whether a principal may decide about a call: an admin may decide about all calls; another user, about calls whose
   * policy names the user now, unless the call is older than the user's account.
   */
  #canDecide (
    { isAdmin, username }: Pick<Principal, 'isAdmin' | 'username'>, { policy, createdAt }: Approval
  ): boolean {
    if (isAdmin) return true
    const snapshot = this.#deps.snapshot()
    const { approvers = [] } = snapshot.policies.get(policy.id) ?? {}
    return username !== undefined && approvers.includes(username) && !isOfFormerAccount(snapshot, username, createdAt)
  }

  /** Whether the user who decided may still decide: was not removed, demoted, or dropped from the policy. */
  #isByApprover (approval: Approval): boolean {
    const { decidedBy = '', createdAt } = approval
    // The operator's system keys and callers without authentication have no user.
    if (decidedBy === '' || decidedBy === operatorUsername) return true
    const snapshot = this.#deps.snapshot()
    const user = snapshot.users.get(decidedBy)
    return user !== undefined && !isOfFormerAccount(snapshot, decidedBy, createdAt) &&
      this.#canDecide({ isAdmin: user.isAdmin === true, username: decidedBy }, approval)
  }

  /** Checks that a principal may decide about some calls. @throws Forbidden */
  #requireApprover (principal: Principal): void {
    if (this.canApprove(principal)) return
    throw new errors.Forbidden('Only admins, and those whom a policy names as approvers, see approvals')
  }

  /** Whether one of the users behind a principal made the call. */
  #isOwn (principal: Principal, { principal: caller, callers }: Approval): boolean {
    const users = usersBehind(this.#deps.snapshot(), principal)
    return caller === principal.key || callers.some((name) => users.has(name))
  }

  /** Whether an approval can still be decided or used. */
  #isOpen ({ expiresAt, isUsed }: Approval): boolean { return isUsed !== true && expiresAt > this.#deps.now() }

  #stateOf ({ state, expiresAt, isUsed }: Approval): ApprovalState {
    return state !== 'denied' && isUsed !== true && expiresAt <= this.#deps.now() ? 'expired' : state
  }

  #show (approval: Approval): ShownApproval {
    const {
      id, username, server, tool, kind, arguments: text, policy, createdAt, expiresAt, decidedBy, isUsed
    } = approval
    return {
      id,
      state: this.#stateOf(approval),
      username,
      server,
      tool,
      kind,
      arguments: JSON.parse(text) as unknown,
      policy,
      createdAt: new Date(createdAt).toISOString(),
      expiresAt: new Date(expiresAt).toISOString(),
      ...decidedBy === undefined ? {} : { decidedBy },
      ...isUsed === undefined ? {} : { isUsed }
    }
  }
}

/**
 * Returns the names of the users who can act as a principal: its user, the owner and the creator of its key, and the
 * members of the team that owns the key.
 */
function usersBehind (snapshot: Pick<Snapshot, 'keys' | 'teams' | 'users'>, principal: Principal): Set<string> {
  const { keys, teams } = snapshot
  const { keyId } = toBearerKeyIdentity(principal)
  const key = keyId === undefined ? undefined : keys.get(keyId)
  const team = principal.team === undefined ? undefined : teams.get(principal.team)
  const names = [
    usernameOf(principal), principal.createdBy, key?.owner, key?.createdBy, ...team ? teamMembers(snapshot, team) : []
  ]
  return new Set(names.filter((name) => name !== undefined))
}

/** Returns arguments as JSON text for approvers: all members, with long texts truncated. */
function withTruncatedTexts (args: unknown): string {
  const { text: max } = extensionsLimits.approvals
  return JSON.stringify(args, (_name, value: unknown) => typeof value === 'string' && value.length > max
    ? `${value.slice(0, max).toWellFormed()}… (${value.length - max} more characters)`
    : value)
}
