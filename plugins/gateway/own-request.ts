import { rpcCode, RpcError } from '../../protocol/errors.ts'
import type { Client, Exchange, TaskForm } from '../../protocol/exchange.ts'
import type { View } from '../settings/index.ts'

interface OwnRequestParts {
  /** The view of the principal on whose behalf the request is sent. The principal may have lost access. */
  readonly view: View
  readonly client: Client
  readonly method: string
  readonly paramsText: string
  readonly taskForm?: TaskForm
}

/** A request that the gateway sends for a principal without a connected client. Questions of the server fail. */
export class OwnRequest implements Exchange<View> {
  view: View
  readonly client: Client
  readonly method: string
  readonly params: Record<string, unknown>
  readonly paramsText: string
  readonly taskForm: TaskForm
  readonly headers = {}
  readonly address = undefined
  readonly canSuspend = false
  readonly cancelled = undefined

  constructor ({ view, client, method, paramsText, taskForm }: OwnRequestParts) {
    this.view = view
    this.client = client
    this.method = method
    this.params = JSON.parse(paramsText) as Record<string, unknown>
    this.paramsText = paramsText
    this.taskForm = taskForm
  }

  onCancel (): void {}
  notify (): void {}
  pause (): void {}
  async ask (): ReturnType<Client['ask']> { throw new RpcError(rpcCode.internal, 'No client can be asked', 'internal') }
}
