import type { Call } from '../../protocol/call.ts'
import { code, RpcError } from '../../protocol/errors.ts'
import type { Asker, Question } from '../../protocol/exchange.ts'
import { mayBeAsked } from '../../protocol/legacy/capabilities.ts'
import type { Notification, Response } from '../../protocol/message.ts'
import { attribute, type Target } from './attribution.ts'
import type { Link, Origin } from './link.ts'
import { isOfPending } from './pending.ts'
import type { Slot } from './slot.ts'

/** What becomes of something that an upstream sent unasked. */
export interface ArrivalDeps {
  name: string
  /** A list changed. */
  refresh: (slot: Slot) => void
  /** Several clients had calls open, and nothing told whom a question was for. */
  contested: () => void
  /** Told before a question goes to a client. @throws RpcError to refuse it */
  onQuestion: (question: Question, asker: Asker) => Promise<void>
  /** For everybody who sees this server. */
  broadcast: (method: string, paramsText: string) => void
  /** For nobody that is known. */
  dropped: (method: string) => void
}

const whom = (slot: Slot, link: Link, origin: Origin): Target<Call, Asker> =>
  attribute({ origin, open: link.calls.values(), ownerOf: (call) => call.exchange.asker.id, owner: slot.owner })

/** Takes an upstream's question to the one client that it is for. @throws RpcError to answer the upstream with */
export async function takeQuestion ({ name, contested, onQuestion }: ArrivalDeps, slot: Slot, link: Link, question: Question, origin: Origin): Promise<Response> {
  const target = whom(slot, link, origin)
  if (target.kind === 'over') throw new RpcError(code.invalidRequest, `The request that ${question.method} belongs to is over`)
  if (target.kind === 'contested') contested()
  if (target.kind === 'contested' || target.kind === 'idle') {
    throw new RpcError(code.invalidRequest, `Tool-Hub cannot tell which client ${question.method} is for: several share this connection. Set "isolation": "session" for server ${JSON.stringify(name)}`)
  }
  const asker = target.kind === 'call' ? target.call.exchange.asker : target.owner
  if (!mayBeAsked(asker.capabilities, question.method)) throw new RpcError(code.methodNotFound, `The client does not support ${question.method}`)
  await onQuestion(question, asker)
  if (question.method === 'elicitation/create') slot.pending.elicitation(question.params.elicitationId, asker)
  if (target.kind === 'owner') return await asker.ask(question)
  return await target.call.asking(async () => await target.call.exchange.ask(question))
}

/** Takes an upstream's notification to whom it is for. */
export function takeNews ({ refresh, broadcast, dropped }: ArrivalDeps, slot: Slot, link: Link, { method, params, paramsText }: Notification, origin: Origin): void {
  if (/^notifications\/(tools|prompts|resources)\/list_changed$/.test(method)) { refresh(slot); return }
  if (method === 'notifications/resources/updated') {
    for (const subscriber of slot.subscribersOf(params.uri)) subscriber.notify(method, paramsText)
    return
  }
  if (isOfPending(method)) {
    const owner = slot.pending.ownerOf(method, params)
    if (owner) owner.notify(method, paramsText)
    else dropped(method)
    return
  }
  const target = whom(slot, link, origin)
  switch (target.kind) {
    case 'call': target.call.exchange.notify(method, paramsText); break
    case 'owner': target.owner.notify(method, paramsText); break
    // Only a log message is for whoever listens.
    case 'idle': if (slot.key.affinity === 'shared' && method === 'notifications/message') broadcast(method, paramsText); else dropped(method); break
    case 'contested': case 'over': dropped(method)
  }
}
