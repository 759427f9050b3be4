// Rights that change on one replica, and what hangs on them on the other. It needs PostgreSQL.
import { test } from 'tap'
import { startReplica } from '../fakes/replica.ts'
import { HeldRights, settingsOfAnn } from '../helpers/held-rights.ts'
import { database } from '../helpers/database.ts'

void test('what hangs on an admin\'s rights at one replica ends when another one takes them', async (t) => {
  const files = await settingsOfAnn(t)
  const { url } = await database(t)
  const hold = await startReplica(t, url, { settings: files.content })
  const change = await startReplica(t, url, { settings: files.content })
  await new HeldRights(hold, change, files).tell(t)
})
