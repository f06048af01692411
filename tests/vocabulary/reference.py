"""Writes reference token counts made by Python tiktoken.

    pip install tiktoken==0.14.0
    python reference.py corpus OUT    every string of the corpus (more than 6,000, in 60 kinds)
    python reference.py frozen OUT    the short ones of a few rounds: tests/fixtures/token_counts.jsonl

A line is a JSON array: kind, o200k_base count, cl100k_base count, text. Both files depend on
nothing but this script, so that a run repeats them. The corpus is read by tests/tokens_reference.rs
if TOLLGATE_CORPUS names it.
"""

import base64
import json
import random
import sys
import unicodedata
import uuid

import tiktoken

ROUNDS = 134
FROZEN_ROUNDS = 13
FROZEN_BYTES = 1500

WORDS = {
    "english": "the of and to in is that it was for on are with they at be this from have or by one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over did down only way find use may water long little very after words called just where most know",
    "german": "der die das und ist nicht ein eine zu von mit sich auf für dem auch es an werden aus er hat dass sie nach wird bei noch wie über einen so zum haben nur oder aber vor zur bis mehr durch man Geschwindigkeitsbegrenzung Straße Übergröße Mädchen Fußgänger können müssen schön größer Zusammenarbeit",
    "french": "le la les de des un une et est que qui dans ce il pas pour sur avec plus par au se ne sont mais comme ou si leur elle été être à où déjà l'été c'est aujourd'hui n'était français garçon naïve cœur œuvre j'ai qu'elle",
    "spanish": "el la de que y a en un ser se no haber por con su para como estar tener le lo todo pero más hacer o poder decir este ir otro ese si me ya ver porque dar cuando él muy sin vez mucho saber qué sobre mañana niño corazón ¿qué ¡hola",
    "portuguese": "o a de que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à seu sua ou ser quando muito há nos já está eu também só pelo coração informação ações",
    "italian": "il di che è la un in non una per sono con mi si ho lo ha come ma ti le cosa se da al ci perché più così città può già l'acqua dell'anno un'altra c'è qualità",
    "dutch": "de het een en van in is dat op te zijn met voor niet aan er om ook als dan maar bij nog wel naar hebben deze zo heeft uit die over tijd coördinatie geïnd ijsberg gezelligheid",
    "polish": "i w nie na się z do to że o jest jak za po tak od przez ale co czy już dla ich był tylko być może który zażółć gęślą jaźń źdźbło szczęście chrząszcz",
    "czech": "a v se na je že s z do o to i ve pro by k po jako za od ale jsem který příliš žluťoučký kůň úpěl ďábelské ódy zmrzlina čtvrtek řeřicha",
    "turkish": "bir ve bu da için ile çok ama ne var daha gibi o kadar sonra olan olarak değil İstanbul'da ışık şöyle güneş çığ öğrenci müsadere IĞDIR yağmur",
    "vietnamese": "và của là có được cho không trong một người với các đã này để những khi về như từ đến tôi cũng ra đường phố tiếng Việt nghĩa quyền hưởng",
    "swedish": "och i att det som en på är av för med till den har de inte om ett men var jag så här från vi kan när år under också över själv räksmörgås",
    "finnish": "ja on ei se että hän oli mutta joka kun niin myös ovat sen tai ole olla kuin lentokonesuihkuturbiinimoottori yö hääyöaie työpäivä äiti öljy",
    "russian": "и в не на я быть он с что а по это она этот к но они мы весь который из у то за свой что-то здравствуйте объявление Москва ЁЖИК съезд программирование",
    "ukrainian": "і в на що не з до це як та він за від про але у його так які ми її був їжак ґанок об'єкт під'їзд Київ щодня",
    "bulgarian": "на и да се в от за че с не ще си по до като това са е са много беше когато защото ъгъл щъркел",
    "greek": "και το να του η της με που την από για τα είναι των σε ο οι στο θα ένα Αθήνα ΆΝΘΡΩΠΟΣ ελληνικά ώρα άλλος φιλοσοφία ποίησης",
    "arabic": "في من على إلى أن هذا التي الذي كان مع هو ما عن لا هذه بعد كل بين قد السَّلَامُ عَلَيْكُمْ العربية مدرسة كتاب ١٢٣ اللغة",
    "hebrew": "של את על לא זה הוא עם כי גם היא אני אל יש היה אם או כל בין ירושלים שָׁלוֹם עִבְרִית מחשב תוכנה ספר",
    "persian": "و در به از که این را با است برای آن یک خود تا کرد بر هم نیز می‌شود خانه‌ها فارسی پژوهش گفتگو",
    "hindi": "के है में की से को का और यह पर एक हैं नहीं कि था भी ने हिन्दी क्षेत्र प्रौद्योगिकी विश्वविद्यालय ज्ञान १२३ स्वतंत्रता",
    "bengali": "এই ও করে থেকে একটি হয় না তার জন্য বাংলা ভাষা প্রযুক্তি বিশ্ববিদ্যালয় ক্ষুদ্র ১২৩",
    "tamil": "ஒரு இந்த என்று மற்றும் அவர் தமிழ் மொழி கணினி பல்கலைக்கழகம் நன்றி வணக்கம்",
    "thai": "ที่ การ เป็น และ ใน ของ มี ได้ ไม่ ว่า จะ ให้ ภาษาไทย กรุงเทพมหานคร คอมพิวเตอร์ น้ำ",
    "korean": "이 그 는 은 을 를 에서 으로 하고 있다 없다 것이 수 한국어 컴퓨터 대학교 안녕하세요 감사합니다 프로그래밍 서울특별시",
    "japanese": "これ は です の に を た が で て と し れ さ ある いる 東京 日本語 コンピュータ プログラミング ありがとうございます 私たち 食べる ヴァイオリン",
    "chinese": "的 一 是 不 了 在 人 有 我 他 这 个 们 中 来 上 大 为 和 国 中华人民共和国 计算机 程序设计 北京 你好 人工智能 繁體中文 學習 經濟",
    "amharic": "እና ነው ላይ ውስጥ የ አዲስ አበባ ኢትዮጵያ ቋንቋ ሰላም መጽሐፍ",
    "georgian": "და არის ეს რომ საქართველო თბილისი ენა კომპიუტერი გამარჯობა მშვიდობა",
}
UNSPACED = {"japanese", "chinese", "thai"}

IDENTIFIERS = "request response user_id tokenBucket HTTPServer parseURL max_tokens getElementById is_valid xs i n err ctx self this value_of __init__ MAX_RETRIES fooBar2 α β".split()

KINDS = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


def sentence(r, language, words):
    chosen = [r.choice(words) for _ in range(r.randint(3, 18))]
    if language in UNSPACED:
        return "".join(chosen) + r.choice("。，！？ ")
    text = " ".join(chosen)
    text = text[:1].upper() + text[1:] if r.random() < 0.8 else text
    if r.random() < 0.1:
        text = text.upper()
    if r.random() < 0.2:
        text = text.replace(" ", ", ", 1)
    return text + r.choice([".", ".", "?", "!", "...", ":", ";", " –", ".\n", ".\r\n\r\n", '."', ")"])


def prose(language):
    words = WORDS[language].split()

    def build(r):
        text = " ".join(sentence(r, language, words) for _ in range(size(r, 12)))
        return unicodedata.normalize("NFD", text) if r.random() < 0.1 else text

    return build


for name in WORDS:
    KINDS[name] = prose(name)


def size(r, most):
    """Mostly small, now and then as much as allowed."""
    return r.randint(1, max(1, int(most * 2 * r.random() ** 1.5)))


def identifier(r):
    return r.choice(IDENTIFIERS)


@kind
def python(r):
    lines = []
    for _ in range(size(r, 30)):
        pad = "    " * r.randint(0, 4) if r.random() < 0.9 else "\t" * r.randint(1, 3)
        lines.append(pad + r.choice([
            f"def {identifier(r)}({identifier(r)}, *args, **kwargs) -> None:",
            f"if not {identifier(r)} or {identifier(r)} >= {r.randint(0, 10**r.randint(1, 9))}:",
            f"return [{identifier(r)} for x in range({r.randint(0, 99)})]  # don't",
            f"print(f'{{{identifier(r)}!r:>10}}\\n')",
            "", '"""It\'s a docstring."""', f"import {identifier(r)} as {identifier(r)}",
        ]))
    return "\n".join(lines)


@kind
def rust(r):
    return "\n".join("    " * r.randint(0, 3) + r.choice([
        f"pub fn {identifier(r)}<'a>(&'a self, {identifier(r)}: &'static str) -> Option<u64> {{",
        f"let mut {identifier(r)} = Vec::<u8>::with_capacity({r.randint(0, 1 << 20)});",
        f"match {identifier(r)} {{ Some(x) if x != 0 => x, _ => return Err(Error::Io) }}",
        "}", "#[derive(Debug, Clone, PartialEq)]", f"/// {identifier(r)}: it's `{identifier(r)}`.", "",
    ]) for _ in range(size(r, 25)))


@kind
def sql(r):
    return ";\n".join(
        f"SELECT {identifier(r)}, COUNT(*) FROM {identifier(r)} WHERE id={r.randint(0, 10**6)} AND name LIKE '%{identifier(r)}''s%' ORDER BY 1"
        for _ in range(size(r, 8)))


@kind
def javascript(r):
    return "\r\n".join("\t" * r.randint(0, 3) + r.choice([
        f"const {identifier(r)} = async ({identifier(r)}) => {{",
        f"if ({identifier(r)} !== undefined && {identifier(r)}?.length) return `${{{identifier(r)}}}`;",
        f"// you'll see {identifier(r)}", "});",
    ]) for _ in range(size(r, 25)))


@kind
def minified(r):
    return "".join(r.choice([
        "!function(e,t){", "var n=0;", "return e&&t||", "(a=b.c)?d:e;", "for(;i<o.length;i++)", "}),", "\"use strict\";",
        f"{identifier(r)}.prototype=", "void 0===", "Object.", "[],{}", "=>e.t(", f"0x{r.getrandbits(16):x},",
    ]) for _ in range(size(r, 120)))


@kind
def jsons(r):
    def value(depth):
        pick = r.random()
        if depth > 2 or pick < 0.4:
            return r.choice([r.randint(-10**9, 10**9), r.random(), None, True, identifier(r), "it's \"é\"\n", ""])
        if pick < 0.7:
            return [value(depth + 1) for _ in range(r.randint(0, 5))]
        return {identifier(r): value(depth + 1) for _ in range(r.randint(0, 6))}

    return json.dumps(value(0), indent=r.choice([None, None, 2, 4]), ensure_ascii=r.random() < 0.5)


@kind
def html(r):
    return "".join(r.choice([
        f'<div class="{identifier(r)}-{r.randint(0, 12)}">', "</div>\n", "<br/>", "&nbsp;&amp;", "<!-- x -->", "  <p>It's ",
        f'<a href="https://example.com/{identifier(r)}?q={r.randint(0, 999)}#t">', "</a>", "<script>", "\n\n",
    ]) for _ in range(size(r, 60)))


@kind
def markdown(r):
    return "".join(r.choice([
        "# Title\n\n", "- item\n", "1. one\n", "```python\n", "```\n\n", "**bold** ", "| a | b |\n|---|---|\n", "> quote\n",
        "[link](http://a.b/c_d)", "* * *\n", "`code`, ", "~~x~~ ", "- [ ] todo\n",
    ]) for _ in range(size(r, 50)))


@kind
def chat(r):
    words = WORDS["english"].split()
    return json.dumps({"model": "gpt-4o", "messages": [
        {"role": r.choice(["user", "assistant", "system"]), "content": sentence(r, "english", words)}
        for _ in range(size(r, 10))]})


@kind
def log(r):
    return "\n".join(
        f"2026-{r.randint(1, 12):02}-{r.randint(1, 28):02}T{r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.random() * 60:09.6f}Z "
        f"{r.choice(['INFO', 'WARN', 'ERROR'])} [{identifier(r)}] {r.randint(0, 255)}.{r.randint(0, 255)}.0.1:{r.randint(1, 65535)} took {r.randint(0, 99999)}ms"
        for _ in range(size(r, 15)))


@kind
def csv(r):
    cut = r.choice(",;\t|")
    return "\n".join(cut.join(r.choice([str(r.randint(0, 10**8)), identifier(r), f"{r.random():.4f}", "", '"a, b"'])
                              for _ in range(r.randint(2, 12))) for _ in range(size(r, 20)))


@kind
def urls(r):
    return r.choice(["\n", " ", "/", "//\n"]).join(
        f"http{r.choice(['', 's'])}://{identifier(r)}.example.com:{r.randint(1, 9999)}/{identifier(r)}/%{r.randint(16, 255):02X}/?{identifier(r)}={r.randint(0, 9)}&x=//"
        for _ in range(size(r, 12)))


@kind
def base64s(r):
    return base64.b64encode(r.randbytes(size(r, 3000))).decode()


@kind
def hexes(r):
    text = r.randbytes(size(r, 1500)).hex()
    return text.upper() if r.random() < 0.3 else text


@kind
def uuids(r):
    return r.choice([" ", "\n", ",", ""]).join(str(uuid.UUID(int=r.getrandbits(128))) for _ in range(size(r, 20)))


@kind
def numbers(r):
    digits = r.choice(["0123456789", "0123456789.,- ", "٠١٢٣٤٥٦٧٨٩", "½¼²³①Ⅻ๑๒๓", "0123456789eE+-\n"])
    return "".join(r.choice(digits) for _ in range(size(r, 400)))


@kind
def emoji(r):
    faces = [chr(0x1F600 + i) for i in range(80)] + ["👩‍👩‍👧‍👦", "👍🏽", "🇩🇪", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "❤️", "☃", "1️⃣", " ", "ok ", "\n"]
    return "".join(r.choice(faces) for _ in range(size(r, 150)))


@kind
def whitespace(r):
    blanks = r.choice([" ", " \n", " \t\n\r", "\u00a0\u0085\u2003\u3000 \n\u2028", " \n\ufeffa", "\x0b\x0c\x1c \r"])
    runs = (r.choice(blanks) * size(r, 90) for _ in range(size(r, 25)))
    return "".join(run + (r.choice(["", "", "a", "1", ".", "é"]) if r.random() < 0.4 else "") for run in runs)


@kind
def punctuation(r):
    signs = r.choice(["-=*_#", ".,;:!?", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "/\n\r.", "…—–«»„“”‘’", " '\"/\n"])
    return "".join(r.choice(signs) * (size(r, 60) if r.random() < 0.2 else 1) for _ in range(size(r, 150)))


@kind
def repeats(r):
    unit = r.choice(["a", "ab", "the ", "\n", "aA", "ha", "0", "é", "漢", "字a", "'s", "👍", " x", "-", "=-", "\t", "ß", "ا", "क", "x\n"])
    return unit * size(r, 4000 // len(unit.encode()))


@kind
def cases(r):
    letters = r.choice(["aA", "abAB'sSdDmMtT", "ǅaA", "aAé́̀", "ªaAʰ漢", "İıIi", "ſsS'", "ΑαΣςσ"])
    return "".join(r.choice(letters) for _ in range(size(r, 300)))


@kind
def contractions(r):
    parts = "I you we they can don DON don’t ' '' 's 'S 't 're 'RE 'rE 've 'VE 'm 'll 'Ll 'LL 'd 'ſ 'x 'r 'l 'lx 1's é's ́'s  \n".split(" ")
    return "".join(r.choice(parts) + r.choice(["", "", " "]) for _ in range(size(r, 80)))


@kind
def marks(r):
    parts = ["\u0301", "\u20dd", "\ufe0f", "A", "a", "漢", "ʰ", " ", "!", "\n", "'s", "1", "\u0903", "\u200d", "B", "ß", "\t"]
    return "".join(r.choice(parts) for _ in range(size(r, 200)))


@kind
def ideographs(r):
    low, high = r.choice([(0x4E00, 0x9FFF), (0x4E00, 0x5000), (0x3400, 0x4DBF), (0xAC00, 0xD7A3), (0x3040, 0x30FF), (0x20000, 0x2A6DF)])
    return "".join(chr(r.randint(low, high)) for _ in range(size(r, 700)))


@kind
def letters(r):
    alphabet = r.choice(["ab", "abcdefghijklmnopqrstuvwxyz", "etaoin", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "абвгде", "aeiou", "xyzq"])
    return "".join(r.choice(alphabet) for _ in range(size(r, 2500)))


@kind
def specials(r):
    parts = ["<|endoftext|>", "<|im_start|>", "<|fim_prefix|>", "<|endofprompt|>", "user", "\n", " ", "<|", "|>", "assistant"]
    return "".join(r.choice(parts) for _ in range(size(r, 30)))


@kind
def short(r):
    return "".join(chr(r.choice([r.randint(0, 0x7F), r.randint(0x80, 0x24F), r.randint(0x250, 0xD7FF)])) for _ in range(r.randint(0, 6)))


def scalar(r):
    top = r.choice([0x7F, 0xFF, 0x24F, 0x5FF, 0x1FFF, 0x30FF, 0xFFFF, 0x1FFFF, 0x10FFFF])
    while True:
        point = r.randint(0, top)
        if not 0xD800 <= point <= 0xDFFF:
            return chr(point)


@kind
def unicode_any(r):
    return "".join(scalar(r) for _ in range(size(r, 250)))


@kind
def unicode_few(r):
    few = [scalar(r) for _ in range(r.randint(2, 8))] + [" ", "a"]
    return "".join(r.choice(few) for _ in range(size(r, 300)))


@kind
def unicode_runs(r):
    return "".join(scalar(r) * r.randint(1, 30) for _ in range(size(r, 25)))


@kind
def mixed(r):
    others = [name for name in KINDS if name != "mixed"]
    return r.choice(["", " ", "\n\n"]).join(KINDS[r.choice(others)](r)[:200] for _ in range(r.randint(2, 5)))


def corpus(rounds):
    for turn in range(rounds):
        for name, build in KINDS.items():
            # Strings seed by their text, so adding a kind leaves the others as they are.
            yield name, build(random.Random(f"{name} {turn}"))


def main(what, path):
    o200k = tiktoken.get_encoding("o200k_base")
    cl100k = tiktoken.get_encoding("cl100k_base")
    frozen = what == "frozen"
    strings = lines = 0
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        for name, text in corpus(FROZEN_ROUNDS if frozen else ROUNDS):
            if frozen and len(text.encode()) > FROZEN_BYTES:
                continue
            counts = [len(encoding.encode_ordinary(text)) for encoding in (o200k, cl100k)]
            line = json.dumps([name, *counts, text], ensure_ascii=False, separators=(",", ":"))
            out.write(line + "\n")
            strings += 1
            lines += len(line.encode()) + 1
    print(f"{strings} strings in {len(KINDS)} kinds, {lines} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:3])
