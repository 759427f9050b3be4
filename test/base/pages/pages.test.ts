import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import Fastify from 'fastify'
import { parse, type DefaultTreeAdapterTypes as Tree } from 'parse5'
import { test } from 'tap'
import { addSecurityHeaders } from '../../../plugins/base/browsers/index.ts'
import { sendPage } from '../../../plugins/base/pages/index.ts'
import { loadPages, type ConsentPage, type HtmlPage as Page, type LoginPage } from '../../../plugins/base/pages/pages.ts'
import { describeScopes } from '../../../plugins/base/pages/scopes.ts'
import { destinationOf, clientIdHost, formActionSource, visibleName, visibleText, websiteHost } from '../../../plugins/base/pages/display.ts'
import { appFor } from '../../helpers/app.ts'
import { path } from '../../helpers/hub.ts'
import { baseLimits } from '../../../plugins/base/limits/limits.ts'

const pages = loadPages()

const login: Required<LoginPage> = {
  client: { name: 'Notes', redirectUri: 'https://notes.example/callback' },
  username: 'alice',
  error: 'The username or the password is wrong.',
  status: 401,
  others: [{ name: 'Code Host', href: '/api/social/codehost' }],
  csrf: 'c-1',
  action: '/oauth/authorize',
  hidden: { request: 'r-1', state: 's-1' }
}
const consent: ConsentPage = {
  username: 'alice',
  client: { name: 'Notes', id: 'notes-1', uri: 'https://notes.example/', redirectUri: 'https://notes.example/callback' },
  isSelfRegistered: true,
  scopes: [...describeScopes(['mcp', 'manage', 'profile', 'openid']), { name: 'other' }],
  resource: 'https://hub.example/mcp',
  csrf: 'c-1',
  action: '/oauth/authorize',
  hidden: { request: 'r-1' },
  logoutAction: '/oauth/logout'
}

type Element = Tree.Element

/** All elements of a page, in the order of the text. */
function elementsOf ({ html }: Page): Element[] {
  const found: Element[] = []
  const visit = (node: Tree.Node): void => {
    if ('tagName' in node) found.push(node)
    if ('childNodes' in node) node.childNodes.forEach(visit)
  }
  const errors: string[] = []
  visit(parse(html, { onParseError: ({ code }) => { errors.push(code) } }))
  assert.deepEqual(errors, [])
  return found
}
const attributeOf = (element: Element | undefined, name: string): string | undefined =>
  element?.attrs.find((each) => each.name === name)?.value
const textOf = (node: Tree.Node | undefined): string => {
  if (node === undefined) return ''
  if ('value' in node) return node.value
  return 'childNodes' in node ? node.childNodes.map(textOf).join('') : ''
}
const all = (page: Page, tagName: string): Element[] => elementsOf(page).filter((each) => each.tagName === tagName)
const bodyText = (page: Page): string => textOf(all(page, 'main')[0]).replace(/\s+/g, ' ').trim()
const fieldsOf = (page: Page): Record<string, string | undefined> => Object.fromEntries(
  all(page, 'input').filter((each) => attributeOf(each, 'type') === 'hidden').map((each) => [attributeOf(each, 'name'), attributeOf(each, 'value')])
)
/** The elements of a page with the names of their attributes: all that is not text. */
const shapeOf = (page: Page): string[] =>
  elementsOf(page).map(({ tagName, attrs }) => `${tagName} ${attrs.map(({ name }) => name).join(' ')}`)

const everyPage: Record<string, Page> = {
  login: pages.login(login),
  'login of a user who came alone': pages.login({ csrf: 'c-1', action: '/oauth/authorize', hidden: {} }),
  consent: pages.consent(consent),
  leave: pages.leave({ client: consent.client, href: '/oauth/authorize/1?a=b&c=d' }),
  start: pages.upstreamLogin({ server: 'issues', whose: 'the user ann', href: '/oauth/login/t/continue?proof=p', url: 'https://id.example/authorize?x=1' }),
  refused: pages.refused({
    title: 'This request cannot be answered',
    text: 'The scope is not known.',
    status: 400,
    client: consent.client,
    href: 'https://notes.example/callback?error=invalid_scope'
  }),
  problem: pages.problem({ title: 'This request is not valid', text: 'The application is not known here.', status: 400 }),
  done: pages.done({ title: 'Connected', text: 'You can close this page.' })
}

const hostile: Record<string, string> = {
  script: '<script>alert(1)</script>',
  'an attribute': '" onfocus="alert(1)" autofocus x="',
  'a quote': "' onfocus='alert(1)",
  'an entity': '&lt;script&gt;&#60;img src=x onerror=alert(1)&#62;',
  'the end of the page': '</title></style></main></body></html><form action=https://evil.example><input name=password>',
  'a comment': '<!-- --!> <![CDATA[ ]]> <?x',
  'the template\'s own tags': '<%~ it.style %><% throw 1 %>`',
  'bidi overrides': 'exe.\u202etxt\u2066\u2069\u200f',
  'zero-width characters': 'Tool\u200b-\u2060Hub\ufeff\u00ad\u{e0041}',
  'control characters': 'a\u0000b\u0007\u001b[2J\u009b\u007f\r\nSet-Cookie: x',
  'lone surrogates': '\ud800x\udc00',
  'line separators': 'a\u2028b\u2029c',
  'piled marks': `Z${'\u0300\u0316'.repeat(300)}`,
  '10 kB': 'W'.repeat(10_240),
  '10 kB of what nobody sees': '\u200b'.repeat(10_240),
  '10 kB of spaces': ' '.repeat(10_240)
}
const unseen = /[\p{C}\p{Default_Ignorable_Code_Point}\u2028\u2029]/u

test('strangers\' texts are inert on every page', async (t) => {
  const fields: Record<string, (text: string) => Page> = {
    'login, client': (text) => pages.login({ ...login, client: { ...login.client, name: text } }),
    'login, redirect URI': (text) => pages.login({ ...login, client: { ...login.client, redirectUri: text } }),
    'login, error': (error) => pages.login({ ...login, error }),
    'login, other way': (text) => pages.login({ ...login, others: [{ name: text, href: '/x' }] }),
    'consent, username': (username) => pages.consent({ ...consent, username }),
    'consent, client': (text) => pages.consent({ ...consent, client: { ...consent.client, name: text, id: text } }),
    'consent, redirect URI': (redirectUri) => pages.consent({ ...consent, client: { ...consent.client, redirectUri } }),
    'consent, app\'s redirect URI': (text) => pages.consent({ ...consent, client: { ...consent.client, redirectUri: `notes://${text}` } }),
    'consent, scope': (text) => pages.consent({ ...consent, scopes: [...consent.scopes.slice(1), { name: text }] }),
    'consent, text of a scope': (text) => pages.consent({ ...consent, scopes: [{ name: 'x', text }, ...consent.scopes.slice(1)] }),
    'consent, resource': (resource) => pages.consent({ ...consent, resource }),
    'leave, client': (text) => pages.leave({ client: { ...consent.client, name: text }, href: '/x' }),
    problem: (text) => pages.problem({ title: text, text, status: 400 }),
    done: (text) => pages.done({ title: text, text })
  }
  for (const [field, page] of Object.entries(fields)) {
    await t.test(field, async () => {
      // Where a redirect leads to may have a remark behind it, which is text.
      const shape = shapeOf(page('a harmless text'))
      for (const [what, text] of Object.entries(hostile)) {
        const made = page(text)
        assert.deepEqual(shapeOf(made), shape, what)
        const seen = bodyText(made)
        assert.doesNotMatch(seen, unseen, what)
        assert.doesNotMatch(seen, /\p{M}{5}/u, what)
        assert.ok(seen.length < 5_000, `${what}: ${seen.length} characters`)
        assert.doesNotMatch(made.headers['content-security-policy'] ?? '', /evil|script|alert|[\r\n]/, what)
      }
    })
  }

  /** Without what no browser sends as it is in a field of one line. */
  const typed = (text: string): string => text.replace(/[\p{Cc}\p{Cs}]/gu, '')

  await t.test('login, username: it stays as it was typed, within its field', async () => {
    for (const [what, text] of Object.entries(hostile)) {
      const page = pages.login({ ...login, username: typed(text) })
      assert.deepEqual(shapeOf(page), shapeOf(pages.login(login)), what)
      const field = all(page, 'input').find((each) => attributeOf(each, 'id') === 'username')
      assert.equal(attributeOf(field, 'value'), typed(text).slice(0, baseLimits.pageTexts.text), what)
    }
  })

  await t.test('hidden fields and the token go back as they came, under any name', async () => {
    for (const [what, text] of Object.entries(hostile)) {
      const page = pages.login({ ...login, csrf: typed(text), hidden: { [typed(text)]: typed(text), csrf: 'of the request' } })
      assert.deepEqual(fieldsOf(page), { [typed(text)]: typed(text), csrf: typed(text) }, what)
    }
  })
})

test('a client\'s name', async (t) => {
  await t.test('that imitates is in quotes, as the client\'s own words, and cannot leave them', async () => {
    for (const page of [pages.login, pages.consent] as Array<(page: object) => Page>) {
      const name = 'Tool-Hub admin” (verified). You will go to “hub.example'
      const made = page({ ...login, ...consent, client: { ...consent.client, name } })
      assert.match(bodyText(made), /Application \(self-reported name\) “Tool-Hub admin' \(verified\)\. You will go to 'hub\.example” /)
      assert.equal(bodyText(made).split('“').length, 2)
      assert.doesNotMatch(textOf(all(made, 'title')[0]) + textOf(all(made, 'h1')[0]), /admin/)
    }
  })

  await t.test('table', async () => {
    for (const [name, expected] of [
      ['Notes', 'Notes'], ['  Notes\n\tfor\u00a0you ', 'Notes for you'], ['متصفح', 'متصفح'], ['Cafe\u0301', 'Café'],
      ['I ❤️ tools', 'I ❤ tools'], ['a\u202eb', 'a\ufffdb'], ['\u2800\u3164\u200b', '(no name)'], ['', '(no name)'],
      ['"x" «y» 「z」', "'x' 'y' 'z'"], ['x'.repeat(80), 'x'.repeat(80)], ['x'.repeat(81), `${'x'.repeat(79)}…`],
      ['😀'.repeat(81), `${'😀'.repeat(79)}…`], ['x'.repeat(1e7), `${'x'.repeat(79)}…`]
    ] as const) assert.equal(visibleName(name), expected)
    assert.equal(visibleText('', 10), '')
  })
})

test('where a redirect leads to', async (t) => {
  const local = 'a program on this computer; any program there could claim this name'
  const app = 'an app on this device; any app there could claim this name'
  const table: Array<[uri: string, host: string, note: string | undefined, source: string | undefined]> = [
    ['https://app.example/callback?x=1', 'app.example', undefined, 'https://app.example'],
    ['https://app.example:8443/callback', 'app.example:8443', undefined, 'https://app.example:8443'],
    ['https://hub.example@evil.example/', 'evil.example', undefined, 'https://evil.example'],
    ['https://аpple.example/', 'xn--pple-43d.example', undefined, 'https://xn--pple-43d.example'],
    ['http://app.example/callback', 'app.example', 'over a connection that is not encrypted', 'http://app.example'],
    ['http://127.0.0.1:51234/callback', '127.0.0.1:51234', local, 'http://127.0.0.1:*'],
    ['http://localhost/callback', 'localhost', local, 'http://localhost:*'],
    ['http://[::1]:51234/', '[::1]:51234', local, 'http:'],
    ['http://127.0.0.1.evil.example/', '127.0.0.1.evil.example', 'over a connection that is not encrypted', 'http://127.0.0.1.evil.example'],
    ['cursor://anysphere.cursor-mcp/oauth/callback', 'cursor:', app, 'cursor:'],
    ['com.example.app:/callback', 'com.example.app:', app, 'com.example.app:'],
    ['https://a;script-src.example/', 'a;script-src.example', undefined, undefined],
    ['https://a,b.example/', 'a,b.example', undefined, undefined],
    ['https://*/', '*', undefined, undefined],
    ["https://'unsafe-inline'/", "'unsafe-inline'", undefined, undefined],
    ['not a URI', 'not a URI', undefined, undefined]
  ]
  for (const [uri, host, note, source] of table) {
    await t.test(uri, async () => {
      const { host: shownHost, note: shownNote } = destinationOf(uri)
      assert.deepEqual([shownHost, shownNote, formActionSource(uri)], [host, note, source])
    })
  }
  await t.test('a host that is too long keeps its end', async () => {
    const { host } = destinationOf(`https://${'hub.example.'.repeat(100)}evil.example/`)
    assert.ok(host.length <= baseLimits.pageTexts.host && host.startsWith('…') && host.endsWith('.evil.example'), host)
  })
  await t.test('no source for what runs or reads here', async () => {
    for (const scheme of ['javascript', 'data', 'vbscript', 'blob', 'file', 'about', 'JavaScript']) assert.equal(formActionSource(`${scheme}:x`), undefined)
  })
  await t.test('a client\'s website is shown as its host, or not at all', async () => {
    assert.equal(websiteHost('https://user@notes.example/x'), 'notes.example')
    for (const uri of ['javascript:alert(1)', 'notes', 'data:text/html,x']) assert.equal(websiteHost(uri), undefined)
  })
  await t.test('a client ID that is an address shows its host', async () => {
    const page = pages.consent({ ...consent, client: { ...consent.client, id: 'https://notes.example/oauth/client.json' } })
    assert.match(bodyText(page), / Client ID, an address at notes\.example https:\/\/notes\.example\/oauth\/client\.json /)
    for (const id of ['notes-1', 'http://notes.example/', 'https://', '']) assert.equal(clientIdHost(id), undefined)
  })
})

test('headers', async (t) => {
  for (const [name, page] of Object.entries(everyPage)) {
    await t.test(`${name}: the policy allows its own style, and nothing else but its form`, async () => {
      const [style, ...more] = all(page, 'style')
      assert.equal(more.length, 0)
      const hash = createHash('sha256').update(textOf(style)).digest('base64')
      const forms: Record<string, string> = { login: "'self' https://notes.example", consent: "'self' https://notes.example", 'login of a user who came alone': "'self'" }
      assert.deepEqual(page.headers, {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy':
          `default-src 'none'; style-src 'sha256-${hash}'; form-action ${forms[name] ?? "'none'"}; frame-ancestors 'none'; base-uri 'none'`,
        'referrer-policy': 'same-origin',
        'x-frame-options': 'DENY',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'cross-origin-opener-policy': 'unsafe-none'
      })
    })
  }

  await t.test('they replace those of the scope', async (t) => {
    const app = Fastify()
    t.after(async () => { await app.close() })
    await app.register(async (scope) => {
      await addSecurityHeaders(scope)
      scope.get('/', async (_request, reply) => sendPage(reply, pages.problem({ title: 'No', text: 'No.', status: 404 })))
    })
    const answer = await app.inject('/')
    assert.equal(answer.statusCode, 404)
    for (const [name, value] of Object.entries(everyPage.problem?.headers ?? {})) assert.equal(answer.headers[name], value, name)
    assert.equal(answer.body, pages.problem({ title: 'No', text: 'No.', status: 404 }).html)
  })

  await t.test('app.pages makes the same pages', async (t) => {
    const app = await appFor(t, {})
    assert.deepEqual(app.pages.consent(consent), everyPage.consent)
  })
})

test('what every page has', async (t) => {
  const allowed = new Set([
    ...['html', 'head', 'meta', 'title', 'style', 'body', 'header', 'main', 'svg', 'rect', 'g', 'path', 'circle', 'span'],
    ...['h1', 'h2', 'p', 'ul', 'li', 'dl', 'div', 'dt', 'dd', 'strong', 'bdi', 'code', 'form', 'label', 'input', 'button', 'a']
  ])
  for (const [name, page] of Object.entries(everyPage)) {
    await t.test(name, async () => {
      const elements = elementsOf(page)
      assert.ok(page.html.startsWith('<!doctype html>'))
      assert.equal(attributeOf(elements[0], 'lang'), 'en')
      assert.deepEqual(elements.map(({ tagName }) => tagName).filter((tag) => !allowed.has(tag)), [])
      for (const { tagName, attrs } of elements) {
        for (const { name: attribute } of attrs) assert.doesNotMatch(attribute, /^(on|style$|src|srcset$|formaction$|target$)/, tagName)
      }
      for (const tag of ['h1', 'main', 'title', 'header']) assert.equal(all(page, tag).length, 1, tag)
      assert.match(textOf(all(page, 'title')[0]), /^\S.* – Tool-Hub$/)
      // Everything that is referred to is there, once.
      const ids = elements.map((each) => attributeOf(each, 'id')).filter((id) => id !== undefined)
      assert.equal(new Set(ids).size, ids.length)
      for (const each of elements) {
        for (const attribute of ['for', 'aria-describedby']) {
          const id = attributeOf(each, attribute)
          assert.ok(id === undefined || ids.includes(id), `${attribute}=${id}`)
        }
      }
      const labelled = new Set(all(page, 'label').map((each) => attributeOf(each, 'for')))
      for (const input of all(page, 'input')) {
        if (attributeOf(input, 'type') !== 'hidden') assert.ok(labelled.has(attributeOf(input, 'id') ?? ''), attributeOf(input, 'name'))
      }
      for (const form of all(page, 'form')) {
        assert.equal(attributeOf(form, 'method'), 'post')
        assert.match(attributeOf(form, 'action') ?? '', /^\/oauth\//)
        assert.equal(form.childNodes.filter((node) => 'tagName' in node && attributeOf(node, 'name') === 'csrf').length, 1)
      }
    })
  }
})

test('the login page', async (t) => {
  const field = (page: Page, id: string): Element | undefined => all(page, 'input').find((each) => attributeOf(each, 'id') === id)

  await t.test('has two fields that password managers know, and the request\'s fields', async () => {
    const page = pages.login(login)
    assert.deepEqual(
      ['username', 'password'].map((id) => [attributeOf(field(page, id), 'name'), attributeOf(field(page, id), 'type'), attributeOf(field(page, id), 'autocomplete')]),
      [['username', 'text', 'username'], ['password', 'password', 'current-password']]
    )
    assert.equal(attributeOf(field(page, 'username'), 'value'), 'alice')
    assert.equal(attributeOf(field(page, 'password'), 'value'), undefined)
    assert.deepEqual(fieldsOf(page), { csrf: 'c-1', request: 'r-1', state: 's-1' })
    assert.equal(attributeOf(all(page, 'form')[0], 'action'), '/oauth/authorize')
    assert.deepEqual(all(page, 'a').map((each) => [attributeOf(each, 'href'), textOf(each)]), [['/api/social/codehost', 'Sign in with Code Host']])
    assert.match(bodyText(page), /“Notes” Your browser then goes to notes\.example /)
  })

  await t.test('says what failed, where a screen reader says it too, and stands at the field to correct', async () => {
    const page = pages.login(login)
    assert.equal(page.status, 401)
    assert.equal(textOf(all(page, 'title')[0]), 'Sign-in failed – Tool-Hub')
    const error = elementsOf(page).find((each) => attributeOf(each, 'id') === 'error')
    assert.deepEqual([attributeOf(error, 'role'), textOf(error)], ['alert', login.error])
    for (const id of ['username', 'password']) {
      assert.deepEqual([attributeOf(field(page, id), 'aria-describedby'), attributeOf(field(page, id), 'aria-invalid')], ['error', 'true'])
    }
    assert.deepEqual(['username', 'password'].map((id) => attributeOf(field(page, id), 'autofocus')), [undefined, ''])
    const nameless = pages.login({ ...login, username: undefined })
    assert.deepEqual(['username', 'password'].map((id) => attributeOf(field(nameless, id), 'autofocus')), ['', undefined])
  })

  await t.test('without an error, client or other ways says nothing of them', async () => {
    const page = pages.login({ csrf: 'c-1', action: '/oauth/authorize', hidden: {} })
    assert.equal(page.status, 200)
    assert.equal(textOf(all(page, 'title')[0]), 'Sign in – Tool-Hub')
    assert.equal(bodyText(page), 'Sign in Username Password Sign in')
    assert.doesNotMatch(page.html, /role=|aria-(?!hidden)|autofocus|undefined/)
  })
})

test('the consent page', async (t) => {
  const page = pages.consent(consent)

  await t.test('says who asks, for whom, where it leads to, and what for', async () => {
    assert.match(bodyText(page), /on behalf of alice\. .*“Notes” Your browser then goes to notes\.example Website \(self-reported\) notes\.example Client ID notes-1 For use with https:\/\/hub\.example\/mcp /)
    assert.deepEqual(all(page, 'strong').map(textOf), ['alice', 'notes.example'])
    assert.deepEqual(all(page, 'li').map(textOf), [
      'Use the tools, prompts and resources that you can use', 'Change the configuration of this gateway on your behalf',
      'See your username and whether you are an administrator', 'Know who you are',
      'Read what you can read in the management API of this gateway: the servers, and your recorded calls with inputs and outputs. ' +
        'For an administrator, this includes all recorded calls, the logs, the users and the configuration, without secrets',
      'other (a permission without a description)'
    ])
    assert.doesNotMatch(bodyText(pages.consent({ ...consent, client: { ...consent.client, uri: 'javascript:alert(1)' } })), /Website|alert/)
  })

  await t.test('warns of a client that registered itself, and of no other', async () => {
    assert.match(bodyText(page), /registered itself\. Nobody has checked its name/)
    assert.doesNotMatch(bodyText(pages.consent({ ...consent, isSelfRegistered: false })), /registered itself/)
  })

  await t.test('has Allow and Deny in one form, and another account in another', async () => {
    const [decision, logout, ...more] = all(page, 'form')
    assert.equal(more.length, 0)
    assert.deepEqual([attributeOf(decision, 'action'), attributeOf(logout, 'action')], ['/oauth/authorize', '/oauth/logout'])
    const buttons = all(page, 'button').map((each) => [textOf(each), attributeOf(each, 'name'), attributeOf(each, 'value')])
    assert.deepEqual(buttons, [['Allow', 'decision', 'allow'], ['Deny', 'decision', 'deny'], ['Use another account', undefined, undefined]])
    assert.ok(textOf(decision).includes('Deny') && !textOf(decision).includes('another'))
    assert.deepEqual(fieldsOf(page), { csrf: 'c-1', request: 'r-1' })
  })
})

test('the page that leaves for the client goes by way of this gateway', async () => {
  const page = pages.leave({ client: consent.client, href: '/oauth/authorize/1?a=b&c=d' })
  const refresh = all(page, 'meta').find((each) => attributeOf(each, 'http-equiv') === 'refresh')
  assert.equal(attributeOf(refresh, 'content'), '0; url=/oauth/authorize/1?a=b&c=d')
  assert.deepEqual(all(page, 'a').map((each) => [attributeOf(each, 'href'), textOf(each)]), [['/oauth/authorize/1?a=b&c=d', 'Continue']])
  assert.equal(all(everyPage.consent as Page, 'meta').some((each) => attributeOf(each, 'http-equiv') !== undefined), false)
})

test('a page leads to paths on this gateway only', async () => {
  for (const elsewhere of ['https://evil.example/', '//evil.example/', '/\\evil.example/', '/\t/evil.example', '\\evil', 'javascript:alert(1)', '', 'x', ' /x', '/a b']) {
    assert.throws(() => pages.login({ ...login, action: elsewhere }), TypeError, elsewhere)
    assert.throws(() => pages.login({ ...login, others: [{ name: 'x', href: elsewhere }] }), TypeError, elsewhere)
    assert.throws(() => pages.consent({ ...consent, action: elsewhere }), TypeError, elsewhere)
    assert.throws(() => pages.consent({ ...consent, logoutAction: elsewhere }), TypeError, elsewhere)
    assert.throws(() => pages.leave({ client: consent.client, href: elsewhere }), TypeError, elsewhere)
  }
})

test('templates write unescaped only what is ours', async () => {
  const raw: string[] = []
  for (const name of readdirSync(path('assets/pages')).filter((each) => each.endsWith('.eta'))) {
    for (const [, code = ''] of readFileSync(path(`assets/pages/${name}`), 'utf8').matchAll(/<%~([^%]*)%>/g)) {
      if (!/^ include\('@(hidden|destination)', it(\.client\.destination)?\) $/.test(code)) raw.push(`${name}:${code}`)
    }
  }
  assert.deepEqual(raw.sort(), ['layout.eta: it.body ', 'layout.eta: it.icon ', 'layout.eta: it.style '])
  assert.doesNotMatch(readFileSync(path('assets/pages/style.css'), 'utf8'), /<\/|url\(|@import/)
})
