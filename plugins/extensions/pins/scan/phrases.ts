/**
 * A kind of phrase that may poison agents. The patterns take linear time: gaps are bounded, and repetitions are not
 * nested.
 */
interface Rule {
  /** A clause in which "it" is the definition. */
  readonly message: string
  readonly patterns: readonly RegExp[]
  /** Whether phrases that are only quoted or discussed are ignored; see `isMention`. */
  readonly ignoresMentions?: true
  /** `schema`: the rule applies to texts in schemas only. */
  readonly where?: 'schema'
}

const secrets = '(?:api[ -]?keys?|access keys?|credentials?|passwords?|passphrases?|secrets?|private keys?|ssh keys?|' +
  '(?:auth|access|bearer|session) tokens?|environment variables|conversation(?: history)?|chat history|' +
  'system prompt|\\.env\\b)'
const sensitiveFile = '(?:~\\/\\.(?:ssh|aws|cursor|gnupg|kube|docker|config|netrc|bash_history|npmrc)|' +
  '\\bid_(?:rsa|ed25519|ecdsa|dsa)\\b|\\/etc\\/(?:passwd|shadow|sudoers)|\\bmcp\\.json\\b|' +
  '\\.aws\\/credentials|\\.ssh\\/|claude_desktop_config)'
const passes = '\\b(?:send|post|upload|forward|transmit|copy|copies|leak|email|report)s?\\b'
const place = '(?:hosts?|servers?|endpoints?|collectors?|analytics|address|url|webhook)'
const outside = '(?:external|remote|attacker|third[- ]party|unknown|our|collector|exfil)'

/** The rules, for texts in lower case on one line, as returned by `toSearchableText`. */
const rules: readonly Rule[] = [
  {
    message: 'it asks the model to ignore its instructions',
    ignoresMentions: true,
    patterns: [
      /\b(?:ignore|disregard|forget|override|bypass|overrule)\b(?: \w+){0,3} (?:previous|prior|above|earlier|preceding|original|initial|existing|system)\b/,
      /\b(?:ignore|disregard|forget|override|bypass)\b(?: (?:all|any|the|your|these|those|its|of)){0,3} (?:instructions?|directions?|directives?|guidelines|rules|safety|safeguards|guardrails|restrictions|above)\b/,
      /\b(?:jailbreak|do anything now|developer mode enabled|unrestricted mode)\b/,
      /\byou are (?:now|no longer) (?:an? |in |the |bound|restricted|limited)/,
      /\b(?:new|updated|hidden|secret) (?:system )?instructions?:/
    ]
  },
  {
    message: 'it asks the model to keep something from the user',
    ignoresMentions: true,
    patterns: [
      /\b(?:do not|don'?t|never|must not|should not|avoid|without)(?: \w+){0,2} (?:tell|telling|inform|informing|notify|notifying|alert|alerting|warn|warning)\b(?: \w+){0,2} (?:user|users|human|anyone|person|customer)\b/,
      /\b(?:do not|don'?t|never|must not|should not)(?: \w+){0,2} (?:mention|reveal|disclose|show|expose)\b[^.]{0,40}\b(?:to (?:the )?(?:user|human|anyone)|that you|you(?:'re| are)|this (?:step|instruction|tool|action|to))\b/,
      /\b(?:no need to|without) (?:mention|mentioning|telling|informing|asking|notifying)\b[^.]{0,20}\b(?:user|human|them|anyone)\b/,
      /\b(?:do not|don'?t) (?:explicitly )?mention (?:this|that|it|anything)\b/,
      /\bkeep (?:this|it|that)(?: \w+){0,3} (?:secret|hidden|from the user|confidential from)\b/,
      /\bthis is a (?:secret|hidden|covert) (?:operation|instruction|step)\b/,
      /\b(?:secretly|covertly|silently|stealthily) (?:\w+ )?(?:send|copy|copies|forward|include|upload|read|add|log|record|collect|append|monitor|capture|store|track|harvest|extract)/
    ]
  },
  {
    message: 'it contains markup that looks like system instructions',
    ignoresMentions: true,
    patterns: [
      /<\/?(?:important|hidden|secret|system|sys|critical|admin|override|instructions?|assistant|system[-_ ]?(?:prompt|message|note|reminder|instructions?)|mandatory)\s*>/,
      /<\|(?:im_start|im_end|system|assistant|user|endoftext|eot_id|start_header_id)\|>|\[\/?inst\]|<<sys>>/,
      /\[(?:system|hidden|admin|override|secret)(?:[ _-](?:prompt|message|note|instructions?|override))?\]|#{2,} ?system (?:prompt|message|instructions?)/,
      /<!--[^>]{0,400}\b(?:must|always|never|ignore|instructions?|ai|assistant|agent|model|user)\b/
    ]
  },
  {
    message: 'it mentions files with secrets',
    patterns: [
      new RegExp(sensitiveFile),
      /\b(?:read|open|load|upload|send|attach|include|cat)s?\b[^.]{0,60}(?<![\w.])\.env\b/
    ]
  },
  {
    message: 'it asks the model to send data to somebody else',
    ignoresMentions: true,
    patterns: [
      /\bexfiltrat|\b(?:steals?|harvests?|stolen|leaks?)\b[^.]{0,40}\b(?:data|credentials?|keys?|tokens?|passwords?|secrets?|cookies|sessions?)\b/,
      new RegExp(`${passes}[^.]{0,60}${secrets}[^.]{0,60}\\b(?:to|via)\\b[^.]{0,30}\\b(?:${outside}|https?:|${place})`),
      new RegExp(`${passes}[^.]{0,60}\\bto (?:an?|our|the|my)? ?${outside}\\b[^.]{0,30}\\b${place}\\b`),
      /\b(?:reveal|print|output|repeat|leak|disclose|dump|expose)s?\b[^.]{0,30}\b(?:system prompt|(?:your|its) (?:initial |full |original )?(?:instructions|prompt)|master password)\b/,
      /\b(?:keylog|keystrokes?|browser cookies|reverse shell|backdoor|covert channel|command and control|\bc2\b server)/
    ]
  },
  {
    message: 'it asks the model to read something and to repeat it in an argument or in its answer',
    ignoresMentions: true,
    patterns: [
      /\b(?:must|always|please|should|need to|have to)(?: \w+){0,2} (?:first )?(?:read|access|open|retrieve|load|cat)\b[^.]{0,120}\b(?:and|then)\b[^.]{0,40}\b(?:pass|include|send|provide|put|supply|attach|add|insert)\b/,
      /\b(?:read|open|access|load|get)s?\b[^.]{0,80}\b(?:file|contents?|config(?:uration)?|history|secrets?|keys?)\b[^.]{0,40}\b(?:and|then)\b[^.]{0,20}\b(?:pass|supply)\b[^.]{0,40}\b(?:as|in|into|via)\b/,
      /\bpass (?:its|the|their|all|that|this|your)\b[^.]{0,40}\b(?:contents?|credentials?|history|keys?|conversation|context|file)\b[^.]{0,20}\b(?:as|in|into|via)\b/,
      /\binclude (?:the |a |all |your )?(?:full |whole |entire |master |complete )?(?:list of (?:last |previous |all )?messages|conversation|chat history|system prompt|password|api keys?|credentials?)/,
      /\b(?:must|always|should)(?: \w+){0,2} first (?:read|access|open|check|retrieve|fetch)\b/
    ]
  },
  {
    message: 'it asks the model to use other tools differently',
    ignoresMentions: true,
    patterns: [
      /\b(?:when|whenever|if|before|after|each time|every time)\b[^.]{0,60}\b(?:is|are|was) (?:called|used|invoked|executed|run)\b[^.]{0,60}\b(?:change|replace|make sure|redirect|modify|bcc|append|instead|must first)\b/,
      /\b(?:change|replace|redirect|set|switch) (?:the )?(?:recipients?|destination|receiver|beneficiary|to address|account number)\b[^.]{0,20}\bto\b/,
      /\balways (?:bcc|cc|add|append|prefix|forward|send a copy)\b/,
      /\ball commands must (?:include|begin|start)/,
      /\balways (?:consult|call|use|invoke|run) this (?:tool|function)?[^.]{0,30}\b(?:first|immediately|before any|before all|before every|instead of)\b/,
      /\b(?:instead of|never use|do not use|don'?t use|stop using)\b (?:any|all|every|the)? ?other tools?\b/,
      /\b(?:even|also) without calling this tool\b|\brequired for[^.]{0,40}\b(?:auditing|compliance|gdpr|soc ?2)\b/
    ]
  },
  {
    message: 'it contains a shell command',
    patterns: [
      /\b(?:curl|wget)\b[^|;]{0,200}(?:\|\s?(?:ba|z|da)?sh\b|\|\s?python)/,
      /\b(?:curl|wget) (?:-\w+ ){0,4}['"]?https?:/,
      /\brm -(?:rf|fr|r)\b|\bchmod (?:-r )?(?:[0-7]{3,4}|[ugoa]*\+[rwxs])|\bsudo \w|\/dev\/tcp\/|\bmkfifo\b|\bnc (?:-\w+ )*-e\b/,
      /\b(?:ba|z|da)?sh -(?:c|i)\b|\bpowershell(?:\.exe)? -|\bpython3? -c\b|\bnode -e\b|\bbase64 (?:-d|--decode)\b|\beval ?\(|\bos\.system\(|\bsubprocess\.(?:run|popen|call)/,
      /\$\((?:curl|wget|cat|id|whoami|env|printenv)\b/
    ]
  },
  {
    message: 'it contains an address to which data can be sent',
    patterns: [
      /https?:\/\/\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b(?<!\/\/127\.0\.0\.1|\/\/0\.0\.0\.0|\/\/(?:10|192|172|169)\.\d{1,3}\.\d{1,3}\.\d{1,3})/,
      /https?:\/\/[\w.-]{0,80}(?:webhook\.site|ngrok(?:-free)?\.(?:io|app|dev)|requestbin|pipedream\.net|burpcollaborator|interact\.sh|oast\.\w|pastebin\.com|transfer\.sh|trycloudflare\.com|discord\.com\/api\/webhooks|hooks\.slack\.com)/,
      /\b(?:send|post|upload|forward|submit|report|transmit|notify|exfiltrate)\b[^.]{0,80}\bto:? ?['"`(<]?https?:\/\//,
      /https?:\/\/[^\s/@"'<>]{1,80}:[^\s/@"'<>]{1,80}@/
    ]
  },
  {
    message: 'its schema contains an address (URL)',
    where: 'schema',
    // Does not match URLs of examples, of the local host and of specifications.
    patterns: [
      /\b(?:https?|wss?|ftp):\/\/(?!(?:[\w-]+\.){0,3}(?:example\.(?:com|org|net)|(?:your|my)[\w-]*\.\w+|localhost|json-schema\.org|schema\.org|www\.w3\.org)\b|127\.0\.0\.1|0\.0\.0\.0|localhost\b|[[<{$*.…])[\w-]+[.:]/
    ]
  }
]

/** Matches the text before a phrase that is only discussed: a word such as `detect`, and no end of the sentence. */
const about = /\b(?:detect|analy[sz]e|check|scan|flag|block|prevent|recogni[sz]e|identif|report|explain|classif|filter|test|illustrat|example|sample|mock|expected|such as)\w*\b[^.!?]*$/
/** Max number of characters before a phrase that are matched with `about`. */
const aboutDistance = 90

/** Whether a phrase at a position is only quoted or discussed. */
function isMention (text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - aboutDistance), at)
  return /['"`‘“«]$/.test(before) || about.test(before)
}

/** Returns the messages of the rules that a text matches. @param text a result of `toSearchableText` */
export function findInjectionPhrases (text: string, isInSchema: boolean): string[] {
  return rules.flatMap(({ message, patterns, ignoresMentions, where }) => {
    if (where === 'schema' && !isInSchema) return []
    const isFound = patterns.some((pattern) => {
      const at = text.search(pattern)
      if (at === -1 || !ignoresMentions || !isMention(text, at)) return at !== -1
      // The phrase may be discussed first, and meant later in the text.
      return [...text.matchAll(new RegExp(pattern, 'g'))].some(({ index }) => !isMention(text, index))
    })
    return isFound ? [message] : []
  })
}
