// The part "Users" of a server's page: who may use it, and why; for those who manage it.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { appFor } from '../../helpers/app.ts'
import { signedIn } from '../../helpers/console.ts'
import { admin, alice } from '../../helpers/doors.ts'

void test('who may use a server stands on its page for its owner and admins, with the way to its sharing', async (t) => {
  const config = { command: 'node', enabled: false, owner: 'alice', visibility: 'private', sharedWithUsers: ['bob', '@red'] }
  const users = ['bob', 'carol', 'dora'].map((username) => ({ ...alice, username }))
  const app = await appFor(t, {
    users: [admin, alice, ...users], teams: [{ name: 'red', members: ['carol'] }], mcpServers: { hers: config }
  })
  const page = async (user: string, query = '?view=users'): Promise<string> => {
    return (await (await signedIn(app, user)).get(`/servers/hers${query}`)).text.replace(/\n/g, ' ')
  }
  const seen = await page('alice')
  assert.match(seen, /Who can use it.*alice.*owner.*bob.*shared with this user.*carol.*@red.*shared with the team/)
  assert.doesNotMatch(seen, /dora/)
  assert.match(seen, /href="\/console\/servers\/hers\/configuration#at-arg\/sharedWithUsers"/)
  assert.match(seen, /href="\/console\/teams\?q=red"/)
  assert.match((await page('alice', '/configuration')), /id="at-arg\/sharedWithUsers"/)
  assert.match((await page('alice', '/configuration')), /href="\/console\/servers\/hers\?view=users"/)
  assert.match(await page('admin'), /href="\/console\/users\/bob\/view"/)
  assert.match(await page('alice', '?view=users&q=caro'), /carol/)
  assert.doesNotMatch(await page('alice', '?view=users&q=caro'), /<th scope="row" class="whole">\s*<span class="">bob/)
  const used = await page('bob')
  assert.match(used, /<h1>hers<\/h1>/)
  assert.doesNotMatch(used, /Who can use it|carol/)
})
