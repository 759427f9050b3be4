import { at, sleep } from '../helpers/client.ts'
import { until, type Cleanup } from '../helpers/hub.ts'
import { startUpstream, tool, type Upstream } from './fault-http.ts'

/** An upstream whose tools report progress and log (`talk`), take 600 ms (`soon`), never answer (`never`), or do none of it (`echo`). */
export async function startTalker (t: Cleanup): Promise<Upstream> {
  return await startUpstream(t, {
    tools: ['echo', 'talk', 'never', 'soon'].map((name) => tool(name)),
    on: async ({ method, params, notify }) => {
      if (method !== 'tools/call' || params.name === 'echo') return undefined
      if (params.name === 'never') return 'never'
      if (params.name === 'soon') await sleep(600)
      if (params.name !== 'talk') return undefined
      const progressToken = at(params, '_meta', 'progressToken')
      for (const progress of [1, 2]) notify('notifications/progress', { progressToken, progress, 'x-unknown': [1] })
      for (const level of ['info', 'error']) notify('notifications/message', { level, data: level })
      return undefined
    }
  })
}

/** Waits until an upstream has seen this many calls of a tool. */
export const called = async (upstream: Upstream, name: string, count = 1): Promise<void> => {
  await until(() => upstream.received.filter(({ message }) => message.params?.name === name).length >= count, `${name} never came`)
}
