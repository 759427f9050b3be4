import type { Activities } from '../db/ports.ts'
import { describeCall } from '../plugins/extensions/activities/describe.ts'
import { ActivityRecorder } from '../plugins/extensions/activities/recorder.ts'
import type { FinishedCall } from '../plugins/gateway/hooks.ts'
import { redactor } from '../plugins/base/secrets/redact.ts'
import { spread } from './statistics.ts'

const batches = 40
const batch = 500
const rounds = 7

/**
 * The CPU time of this process for recording one call, in ms: what the gateway does for it, without the rest of the call and without what
 * it costs that the other core works.
 * @param call one that has just ended
 */
export async function costOfRecording (store: Activities, call: () => FinishedCall): Promise<number> {
  const redact = redactor({ url: 'http://127.0.0.1:1/mcp', headers: { authorization: 'Bearer of the upstream' } })
  const recorder = new ActivityRecorder({
    store,
    describe: (each) => describeCall(each, { payloads: true, redact: (_server, text) => redact(text) }),
    isAway: () => false,
    bounds: { entries: batch * 2, size: 2 ** 30 },
    log: () => {}
  })
  const times: number[] = []
  for (let round = 0; round <= rounds; round++) {
    let cpu = 0
    for (let n = 0; n < batches; n++) {
      const calls = Array.from({ length: batch }, call)
      const before = process.cpuUsage()
      for (const each of calls) recorder.note(each)
      await written(recorder)
      const { user, system } = process.cpuUsage(before)
      cpu += user + system
    }
    if (round > 0) times.push(cpu / 1_000 / batches / batch)
  }
  await recorder.close(10_000)
  if (recorder.shed > 0) throw new Error(`${recorder.shed} calls were not recorded`)
  return spread(times).median
}

async function written (recorder: ActivityRecorder): Promise<void> {
  while (recorder.waiting > 0) await new Promise((resolve) => { setTimeout(resolve, 1) })
}
