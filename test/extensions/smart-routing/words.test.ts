import assert from 'node:assert/strict'
import { test } from 'tap'
import { plainBm25, measure } from '../../../bench/search/quality.ts'
import { readQuestions, readTools } from '../../../bench/search/questions.ts'
import { syntheticTools } from '../../../bench/search/synthetic.ts'
import { cosineWeights, fuseRankings } from '../../../plugins/extensions/smart-routing/fuse.ts'
import { ShownTool } from '../../../plugins/extensions/smart-routing/shown-tools.ts'
import { analyseTool } from '../../../plugins/extensions/smart-routing/words/analysis.ts'
import { ToolIndex, ToolStore, type SearchableTool } from '../../../plugins/extensions/smart-routing/words/index.ts'
import { tokensOf } from '../../../plugins/extensions/smart-routing/words/stem.ts'
import { alphanumericRuns, wordsOf } from '../../../plugins/extensions/smart-routing/words/tokens.ts'
import { extensionsLimits } from '../../../plugins/extensions/limits.ts'
import { setLimits } from '../../helpers/patient.ts'

const tool = (server: string, ownName: string, description = '', more: Partial<SearchableTool> = {}): SearchableTool =>
  ({ name: `${server}-${ownName}`, ownName, server, description, ...more })

const schema = (properties: Record<string, string>): unknown =>
  ({ type: 'object', properties: Object.fromEntries(Object.entries(properties).map(([name, description]) => [name, { type: 'string', description }])) })

const some = [
  tool('github', 'create_issue', 'Create a new issue in a GitHub repository'),
  tool('github', 'merge_pull_request', 'Merge a pull request'),
  tool('github', 'search_repositories', 'Search for GitHub repositories'),
  tool('files', 'delete_file', 'Delete a file from the disk', { inputSchema: schema({ path: 'Absolute path of the file' }) }),
  tool('files', 'listDirectory', 'List what a directory holds'),
  tool('mail', 'send_email', 'Sends a new email', { inputSchema: schema({ recipient: 'Who gets it', subject: 'The subject line' }) }),
  tool('mail', 'search_emails', 'Searches for emails'),
  tool('maps', 'maps_directions', 'Get directions between two points'),
  tool('browser', 'take_screenshot', 'Take a screenshot of the current page'),
  tool('calendar', 'create-event', 'Create a new calendar event'),
  tool('calendar', 'delete-event', 'Delete a calendar event'),
  tool('weather', 'get_forecast', 'Weather of the next days', { title: 'Forecast', inputSchema: schema({ zipCode: 'Postal code of the town' }) })
]

async function indexed (tools: readonly SearchableTool[]): Promise<ToolIndex> {
  const index = new ToolIndex()
  await index.update(tools)
  return index
}
const first = (index: ToolIndex, query: string): string | undefined => index.search(query, 5)[0]?.tool.ownName

test('finds a tool', async (t) => {
  const index = await indexed(some)
  const table: Array<[what: string, query: string, ownName: string]> = [
    ['by its words', 'create an issue', 'create_issue'],
    ['by its name', 'github-merge_pull_request', 'merge_pull_request'],
    ['by a name in camel case', 'list directory', 'listDirectory'],
    ['by a question in camel case', 'listDirectory', 'listDirectory'],
    ['by a word in mixed case', 'github repositories search', 'search_repositories'],
    ['by its title', 'forecast', 'get_forecast'],
    ['by a parameter', 'zip code', 'get_forecast'],
    ['by the description of a parameter', 'postal', 'get_forecast'],
    ['by another form of a word', 'searching repository', 'search_repositories'],
    ['by a synonym', 'erase a file', 'delete_file'],
    ['by an abbreviation', 'merge the PR', 'merge_pull_request'],
    ['by two words for one', 'screen shot', 'take_screenshot'],
    ['by one word for two', 'pullrequest', 'merge_pull_request'],
    ['in spite of typos', 'snd an emial', 'send_email'],
    ['in spite of a wrong first letter', 'xirections', 'maps_directions'],
    ['in German', 'Schicke eine E-Mail', 'send_email'],
    ['in German without umlauts', 'Loesche die Datei', 'delete_file'],
    ['in Spanish', 'Borra el archivo', 'delete_file'],
    ['in French', "Fais une capture d'écran", 'take_screenshot'],
    ['in Portuguese', 'Envie um e-mail', 'send_email'],
    ['in Italian', 'Elimina il file', 'delete_file'],
    ['in Russian', 'Удали файл', 'delete_file'],
    ['in Chinese', '删除文件', 'delete_file'],
    ['in Japanese', 'ファイルを削除して', 'delete_file'],
    ['in Korean', '파일을 삭제해줘', 'delete_file']
  ]
  for (const [what, query, ownName] of table) {
    await t.test(what, async () => { assert.equal(first(index, query), ownName) })
  }
})

test('words of a script without spaces are found, whatever they may mean and however they are parted', async (t) => {
  const index = await indexed([...some, tool('clock', 'get_time', 'Tells the hour'), tool('lamps', 'turn_on_light', 'Makes light')])
  for (const [query, ownName] of [
    ['지금 몇 시', 'get_time'],
    ['이메일 검색', 'search_emails'],
    ['电子邮件发送', 'send_email']
  ] as const) await t.test(query, async () => { assert.equal(first(index, query), ownName) })
})

test('questions and tools in scripts without spaces are compared by pairs of characters', async (t) => {
  const index = await indexed([
    ...some,
    tool('办公', 'chuangjian_yuangong', '为新入职的员工建立档案'), tool('办公', 'chaxun_kaoqin', '统计部门的考勤记录'),
    tool('店', 'zaiko', '倉庫の在庫数を調べます'), tool('店', 'yoyaku', '座席の予約を取り消します'),
    tool('ร้าน', 'samut', 'ตรวจสอบยอดเงินคงเหลือในบัญชี'), tool('ร้าน', 'jong', 'จองโต๊ะอาหารสำหรับลูกค้า')
  ])
  for (const [query, ownName] of [
    ['帮我看看上个月的考勤', 'chaxun_kaoqin'], ['明天有员工入职', 'chuangjian_yuangong'],
    ['在庫はいくつありますか', 'zaiko'], ['予約をやめたい', 'yoyaku'],
    ['ยอดเงินของฉันมีเท่าไร', 'samut'], ['อยากจองโต๊ะพรุ่งนี้', 'jong']
  ] as const) await t.test(query, async () => { assert.equal(first(index, query), ownName) })
})

test('a long question is read to its end', async () => {
  const index = await indexed([...some, tool('music', 'tune_xylophone', 'Tunes a xylophone')])
  const before = Array.from({ length: 390 }, (_, i) => `w${i}q`).join(' ')
  assert.equal(first(index, `${before} xylophone`), 'tune_xylophone')
  assert.equal(first(index, `${before} ${before} xylophone`), undefined, 'beyond 400 words nothing is read')
})

test('a tool that does several things is found by the values of its parameters', async () => {
  const action = { type: 'string', enum: ['pause-campaign', 'resumeCampaign', 7, null, 'x'.repeat(9_000)] }
  const index = await indexed([...some, tool('ads', 'manage', 'Runs one operation', { inputSchema: { type: 'object', properties: { action } } })])
  for (const query of ['pause a campaign', 'resume the campaign']) assert.equal(first(index, query), 'manage')
})

test('values tell what a question is about', async (t) => {
  const names = ['run_sql_query', 'get_issue', 'resize_window', 'press_key', 'set_location', 'play_audio', 'add_reaction', 'pick_color',
    'keep_calendar']
  const index = await indexed(names.map((name) => tool('box', name, 'Does what it is called')))
  for (const [query, ownName] of [
    ['SELECT name FROM people WHERE age > 30', 'run_sql_query'],
    ['how about ABC-123', 'get_issue'], ['what about #77?', 'get_issue'], ['make it 1280x720', 'resize_window'],
    ['do ctrl+shift+t', 'press_key'], ['be at 48.137, 11.575', 'set_location'], ['let me hear song.mp3', 'play_audio'],
    ['say 👍 to that', 'add_reaction'], ['more like #00ff7f', 'pick_color'], ["the dentist at 3 o'clock", 'keep_calendar']
  ] as const) await t.test(query, async () => { assert.equal(first(index, query), ownName) })
  assert.equal(first(index, 'the iso-8601 and utf-8'), undefined, 'no numbers of issues')
})

test('a question is read with little noise', async (t) => {
  const tools = [
    ...some,
    tool('plan', 'get_sprint_board_column_metadata', 'Sprint summary'), tool('plan', 'get_sprint_summary', 'Tells how it went'),
    ...['create_board', 'list_boards', 'create_update', 'delete_board'].map((name) => tool('monday', name, 'Does so on monday.com boards')),
    ...['update_event', 'list_events'].map((name) => tool('agenda', name, `Can ${name.replace('_', ' ')}s: appointments and meetings`)),
    tool('shop', 'list_customers', 'All customers'), tool('shop', 'list_custom_fields', 'All custom fields')
  ]
  const index = await indexed(tools)
  const table: Array<[what: string, query: string, ownName: string]> = [
    ['a day is no server', 'show the appointments of next Monday', 'list_events'],
    ['the tool whose whole name is asked for comes first', 'where is the summary of the sprint', 'get_sprint_summary'],
    ['words of another meaning are not the same for their stems', 'custom fields', 'list_custom_fields'],
    ['a misspelled word may have an ending', 'directons', 'maps_directions'],
    ['a word of three letters may lack its vowel', 'snd', 'send_email']
  ]
  for (const [what, query, ownName] of table) {
    await t.test(what, async () => { assert.equal(first(index, query), ownName) })
  }
})

/** 300 tools of one server: ten verbs for each of thirty nouns. */
const verbs = ['create', 'delete', 'update', 'list', 'get', 'archive', 'export', 'import', 'share', 'search']
const nouns = [
  'invoice', 'customer', 'ticket', 'calendar_event', 'repository', 'pull_request', 'email', 'spreadsheet', 'image', 'database_table', 'webhook',
  'deployment', 'container', 'playlist', 'contact', 'branch', 'channel_message', 'document', 'task', 'project', 'user_account', 'payment', 'refund',
  'subscription', 'product', 'order', 'shipment', 'certificate', 'dns_record', 'alert'
]
const ofVerb = (verb: string, noun: string): SearchableTool => {
  const description = `${verb.charAt(0).toUpperCase()}${verb.slice(1)}s ${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun.replace('_', ' ')} in the suite.`
  return tool('suite', `${verb}_${noun}`, description, { inputSchema: schema({ id: `Identifier of the ${noun}`, title: 'title' }) })
}
const suite = nouns.flatMap((noun) => verbs.map((verb) => ofVerb(verb, noun)))

test('a word that tools have and that differs by one letter is meant rather than one that no tool has', async (t) => {
  const index = await indexed(suite)
  for (const [query, expected] of [
    ['contaner', /_container$/], ['continer', /_container$/], ['containr', /_container$/], ['contct', /_contact$/], ['brnch', /_branch$/],
    ['databse', /_database_table$/], ['datbase', /_database_table$/], ['datebase', /_database_table$/], ['customr', /_customer$/],
    ['custome', /_customer$/], ['invoce', /_invoice$/], ['playlast', /_playlist$/], ['produc', /_product$/], ['aert', /_alert$/],
    ['list contaners', /^list_container$/], ['create invoce', /^create_invoice$/], ['delete brnch', /^delete_branch$/],
    ['update contct', /^update_contact$/], ['find customr', /_customer$/], ['create databse table', /^create_database_table$/]
  ] as const) await t.test(query, async () => { assert.match(first(index, query) ?? 'nothing', expected) })
  await t.test('also where tools have it in the plural only', async () => {
    const plurals = await indexed([tool('crm', 'list_customers', 'Lists all customers'), tool('shop', 'list_products', 'Lists all products')])
    assert.equal(first(plurals, 'customr'), 'list_customers')
  })
  await t.test('and it is what a model is told', async () => { assert.equal(index.queryWords('list contaners').join(' '), 'list contaners container') })
  for (const [what, query, expected] of [
    ['a word of a language that the question is in', 'el archivo que se llama informe', 'read_file'],
    ['a form of an English word', 'reads', 'read_file'],
    ['a number', '8080', undefined]
  ] as const) {
    await t.test(`not ${what}`, async () => {
      const others = await indexed([tool('files', 'read_file', 'Read a file'), tool('disk', 'archive', 'Archives 800 things'), tool('a', 'ready', 'ready')])
      assert.equal(first(others, query), expected)
    })
  }
})

test('a word counts more than a synonym of several words', async (t) => {
  const sending = tool('files', 'send_file', 'Sends a file to a device')
  for (const [what, tools] of [
    ['few tools', suite.filter(({ ownName }) => /_(?:email|channel_message)$/.test(ownName))],
    ['many', suite],
    ['others that send', [...suite, sending, tool('log', 'note', 'Notes a line that is sent later')]]
  ] as const) {
    const index = await indexed(tools)
    for (const query of ['send an email', 'send email', 'send an email to Bob', 'send an emial', 'E-Mail senden', 'email Bob the report']) {
      await t.test(`${what}: ${query}`, async () => {
        const found = index.search(query, 100).map(({ tool }) => tool.ownName).filter((name) => name !== sending.ownName)
        assert.match(found[0] ?? 'nothing', /_email$/)
        for (const verb of verbs) {
          const [right, other] = [found.indexOf(`${verb}_email`), found.indexOf(`${verb}_channel_message`)]
          assert.ok(right !== -1 && (other === -1 || right < other), found.join(' '))
        }
        if (query.startsWith('send an email')) assert.ok(found.slice(0, 10).every((name) => name.endsWith('_email')), found.join(' '))
      })
    }
  }
})

test('a server that is named counts more', async () => {
  const index = await indexed([
    ...some, ...['slack', 'teams', 'zulip'].flatMap((server) => [tool(server, 'post_message', 'Post a message to a channel'), tool(server, 'list_channels', 'List channels')])
  ])
  assert.equal(index.search('post a message in zulip', 1)[0]?.tool.name, 'zulip-post_message')
})

test('beside a tool that the query names, words and meaning count as ever', async () => {
  const shown = ['search', 'search_files', 'archive_report'].map((key) => {
    const item = { key, text: JSON.stringify({ name: key }) }
    return new ShownTool(key, { provider: 'fs', key, item }, { text: item.text })
  })
  const words = (await indexed(shown)).search('search', 5)
  const cosines = new Map(shown.map((each, at) => [each, [0.8, 0.8, 0.9][at] ?? 0]))
  const tools = new Map(shown.map((each) => [each.name, each]))
  for (const weight of Object.values(cosineWeights)) {
    const found = fuseRankings(words, cosines, tools, weight)
    assert.deepEqual(found.map(({ tool }) => tool.ownName), ['search', 'search_files', 'archive_report'])
    assert.equal(found[0]?.score, 1)
  }
  assert.deepEqual(fuseRankings(words, undefined, tools).map(({ tool }) => tool.ownName), ['search', 'search_files'])
})

test('an index is updated by difference, and finds only what it was given last', async () => {
  const index = await indexed(some)
  const [, ...others] = some
  const added = tool('notes', 'write_note', 'Write down a note')
  const updated = index.update([...others, added])
  assert.ok(!index.search('create an issue', 100).some(({ tool }) => tool.ownName === 'create_issue'), 'found while the update runs')
  await updated
  assert.equal(first(index, 'write a note'), 'write_note')
  assert.deepEqual(index.search('create an issue in the repository', 100), (await indexed([...others, added])).search('create an issue in the repository', 100))
  await Promise.all([index.update([]), index.update(some), index.update(others), index.update(some)])
  assert.deepEqual(index.search('delete', 100), (await indexed(some)).search('delete', 100))
  const [one, two, ...rest] = some
  const changed = tool('mail', 'delete_mailbox', 'Deletes a mailbox')
  for (const start of [[changed, two], [two, changed], [two, two], [changed, changed], [one, two]]) {
    const tools = [...start, ...rest].filter((one) => one !== undefined)
    await index.update(tools)
    assert.deepEqual(index.search('delete', 100), (await indexed(tools)).search('delete', 100), 'the same as if it were new')
  }
  await index.update([])
  assert.deepEqual(index.search('delete', 100), [])
})

test('tools of other indexes influence nothing', async () => {
  const alone = (await indexed(some)).search('delete the calender evnt', 100)
  const other = await indexed([...some, ...Array.from({ length: 50 }, (_, i) => tool('hidden', `calender_delete_${i}`, 'delete evnt'))])
  other.search('delete the calender evnt', 100)
  const index = await indexed(some)
  assert.deepEqual(index.search('delete the calender evnt', 100), alone)
  assert.deepEqual(index.queryWords('delete the calender evnt'), ['delete', 'calender', 'calendar', 'evnt', 'event'])
})

test('a question is put right for a model', async () => {
  const index = await indexed(some)
  assert.deepEqual(index.queryWords('Lösche die Datei'), ['delete', 'file'])
  assert.deepEqual(index.queryWords('删除文件'), ['delete', 'file'])
  assert.deepEqual(index.queryWords('tkae a screnshot'), ['tkae', 'take', 'screnshot', 'screenshot'])
  assert.deepEqual(index.queryWords('…'), [])
  assert.deepEqual(new ToolIndex().queryWords('anything'), [])
})

test('results are the same each time, at most as many as asked for', async () => {
  const equal = Array.from({ length: 30 }, (_, i) => tool('same', 'sync', 'Synchronizes', { name: `same-${i}` }))
  const index = await indexed(equal)
  assert.deepEqual(index.search('sync', 7).map(({ tool }) => tool.name), equal.slice(0, 7).map(({ name }) => name))
  assert.deepEqual(index.search('sync', 0), [])
  assert.deepEqual(index.search('', 5), [])
  assert.deepEqual(new ToolIndex().search('sync', 5), [])
})

test('hostile descriptions', async (t) => {
  const honest = readTools().tools
  const asked = ['send an email', 'create an issue on github', 'list files in a folder', 'delete the calendar event', 'take a screenshot', 'run a sql query']
  const words = [...new Set(honest.flatMap(({ ownName, description }) => `${ownName} ${description ?? ''}`.toLowerCase().split(/[^a-z]+/)))]
  const before = (await indexed(honest))
  const stuffed: Record<string, SearchableTool> = {
    'all words in the description': tool('evil', 'tool', words.join(' ')),
    'the question a thousand times': tool('evil', 'tool', Array.from({ length: 1_000 }, () => asked.join(' ')).join(' ')),
    'many words in the name': tool('evil', words.slice(0, 2_000).join('_'), 'Does it all'),
    'verbs and nouns in the name': tool('evil', 'send_create_list_delete_take_run_email_issue_file_folder_event_screenshot_sql_query', asked.join(' ').repeat(9)),
    'many parameters': tool('evil', 'tool', 'Does it all', { inputSchema: schema(Object.fromEntries(words.slice(0, 5_000).map((word) => [word, word]))) }),
    'all words in the title': tool('evil', 'tool', '', { title: words.join(' ') }),
    'the server is named after everything': tool('send-email-create-issue-list-files-delete-event-take-screenshot-run-sql-query', 'tool', asked.join(' '))
  }
  for (const [what, evil] of Object.entries(stuffed)) {
    await t.test(`${what} does not win`, async () => {
      const index = await indexed([evil, ...honest])
      for (const query of asked) {
        assert.notEqual(index.search(query, 1)[0]?.tool, evil, query)
        assert.equal(index.search(query, 1)[0]?.tool, before.search(query, 1)[0]?.tool, query)
      }
    })
  }

  await t.test('what is long, deep, or of odd characters is read, and breaks nothing', async () => {
    let deep: unknown = {}
    for (let i = 0; i < 10_000; i++) deep = { type: 'object', properties: { a: deep }, items: deep }
    const cyclic: Record<string, unknown> = { type: 'object' }
    cyclic['properties'] = { a: cyclic, b: cyclic }
    const odd = [
      'x'.repeat(65_536), 'aB'.repeat(32_768), '1a'.repeat(32_768), 'ﷺ'.repeat(20_000), '中'.repeat(65_536), 'é\u0301'.repeat(20_000), '\u0000\u001b[31m\u202e\ufeff'.repeat(9_999),
      '\ud800\udfff\ud800', '{"a":'.repeat(10_000), 'a\n'.repeat(30_000), '.'.repeat(65_536), '/a'.repeat(30_000), '"'.repeat(65_536), '@a.'.repeat(20_000), '😀'.repeat(20_000)
    ]
    const tools = odd.flatMap((text, i) => [
      tool('odd', `t${i}`, text), tool(text, text, text, { title: text, name: `n${i}`, inputSchema: schema({ [text]: text }) })
    ])
    const index = await indexed([...some, ...tools, tool('odd', 'deep', '', { inputSchema: deep }), tool('odd', 'cyclic', '', { inputSchema: cyclic }), tool('odd', '__proto__', 'constructor toString')])
    assert.equal(first(index, 'send an email'), 'send_email')
    for (const text of [...odd, '__proto__ constructor toString hasOwnProperty', words.join(' ')]) {
      index.search(text, 10)
      index.queryWords(text)
    }
  })

  await t.test('what others cannot see of it: the vocabulary of one tool is bounded', async () => {
    const index = await indexed([tool('evil', 'tool', Array.from({ length: 5_000 }, (_, i) => `word${i}`).join(' ')), ...some])
    assert.deepEqual(index.search('word4999', 5).filter(({ tool }) => tool.server === 'evil' && tool.description?.startsWith('word4999')), [])
  })
})

test('thousands of tools are indexed in turns', async () => {
  const tools = syntheticTools(readTools().tools, 2_000)
  let turns = 0
  let isBuilt = false
  const turn = (): void => { turns++; if (!isBuilt) setImmediate(turn) }
  setImmediate(turn)
  const store = new ToolStore()
  const index = new ToolIndex(store)
  await index.update(tools)
  assert.ok(turns > 20, `${turns} turns`)
  const before = turns
  await index.update([])
  await store.sweep()
  isBuilt = true
  assert.ok(turns > before, 'they are removed in turns')
  assert.equal(store.size, 0, 'and leave nothing')
  await index.update(tools)
  for (const query of ['send an email', 'wie komme ich nach Hamburg', 'delte the calender event']) assert.equal(index.search(query, 10).length, 10)
  const more = [...tools, tool('late', 'xylophone_tuner', 'Tunes xylophones')]
  await index.update(more)
  assert.equal(first(index, 'tune my xylophone'), 'xylophone_tuner')
})

test('the ranking is better than plain BM25 on the questions of the benchmark', async () => {
  const { tools } = readTools()
  const index = await indexed(tools)
  const plain = plainBm25(tools)
  const questions = readQuestions().filter(({ set }, n) => set === 'tuned' && n % 3 === 0)
  const ours = await measure(questions, (query) => index.search(query, 20).map(({ tool }) => tool))
  const theirs = await measure(questions, (query) => plain(query, 20))
  assert.ok(ours.recall5 >= 0.65, `recall@5 ${ours.recall5}`)
  assert.ok(ours.recall5 > theirs.recall5 + 0.2, `plain BM25 ${theirs.recall5}`)
})

test('words from the cache are the words of the text, whatever stands between them', (t) => {
  const signs = ['\u00a0', '«', '·', '–', '—', '’', '…', '\u200d', '\u2017', '\u203e', '→', '─', '★', '✓', '❶', 'ª', '\u0301', '🎉', '検索', 'é']
  const texts = signs.flatMap((sign) => [
    `createPullRequest${sign}GitHub oauth2`, `a${sign}b`, `${sign}list_Files${sign}`, `read ${sign} write`, 'x'.repeat(60) + sign + 'y'.repeat(60)
  ])
  for (const text of [...texts, ...texts, texts.join(' '), '']) {
    for (const max of [1, 3, 300]) t.same(tokensOf(text, max).map(({ word }) => word), wordsOf(text, max), `${text.slice(0, 40)} ${max}`)
    const general = [...text.normalize('NFKC').matchAll(/[\p{L}\p{N}\p{M}]+/gu)].map(([run]) => run.slice(0, 48))
    t.same(alphanumericRuns(text).filter((run) => run !== ''), general, 'the quick way to split finds what the general one does')
  }
  t.end()
})

test('terms are counted rightly after the cache of words was emptied', async (t) => {
  const words = (seed: number): string => Array.from({ length: 200 }, (_, i) => `w${seed}x${i.toString(36)}`).join(' ')
  const numbered = (i: number): SearchableTool => ({ name: `t${i}`, ownName: 'read_file', server: 's', description: `Reads a file. ${words(i)} file file` })
  const first = analyseTool(numbered(0))
  for (let i = 1; i <= 1.2 * extensionsLimits.wordSearch.cachedWords / 200; i++) analyseTool(numbered(i))
  const again = analyseTool(numbered(0))
  t.same(again.tokens.map(({ term }) => term), first.tokens.map(({ term }) => term))
  t.same(again.weights, first.weights)
  t.equal(new Set(again.tokens.map(({ term }) => term)).size, again.tokens.length)
})

test('the cache of words is emptied by queries too, so that they cannot fill the memory', async (t) => {
  const index = await indexed(some)
  setLimits(t, extensionsLimits.wordSearch, { cachedWords: 1_000 })
  const numberOf = (word: string): number => tokensOf(word, 1)[0]?.number ?? NaN
  const numbers: number[] = []
  for (let query = 0; query < 10; query++) {
    index.search(Array.from({ length: 300 }, (_, i) => `q${query}x${i}`).join(' '), 1)
    numbers.push(numberOf(`marker${query}`))
  }
  t.ok(numbers.every((number) => number < 3_000), numbers.join())
})
