//! The sections that an instruction asks for, and the words by which their headings are recognised, in the languages
//! that agents write most.

use crate::contract::handoff::Author;

/// A section that an instruction asks for.
#[derive(Debug)]
pub(super) struct Asked {
    /// Its topic, as faults name it.
    pub(super) about: &'static str,
    /// The beginning of its heading in the instruction, in lower case.
    pub(super) heading: &'static str,
    /// A heading belongs to the section if a word in it begins with one of these; see [`has_stem`].
    pub(super) stems: &'static str,
    /// There may really be nothing to say, so "N/A" is accepted as its text.
    pub(super) may_be_none: bool,
}

const GOAL: &str = "\
    work,task,subtask,gearbeitet,goal,context,overview,summary,where we are,this session,last session,project,purpose,\
    objective,background,aufgabe,ziel,arbeit,kontext,überblick,Überblick,zusammenfassung,objetivo,tarea,trabajo,\
    contexto,resum,objectif,tâche,travail,contexte,résumé,tarefa,trabalho,tujuan,tugas,pekerjaan,konteks,\
    ringkasan,目标,目標,任务,任務,工作,背景,概述,概要,总结,目的,作業,タスク,まとめ,목표,작업,배경,개요,요약,과제,進め,项目";
pub(super) const PROGRESS: &str = "\
    progress,status,state,done,completed,complete,shipped,accomplished,working,verified,where we are,\
    fortschritt,stand$,zwischenstand,arbeitsstand,erledigt,fertig,zustand,progreso,estado,avance,hecho,\
    completad,progrès,avancement,état,État,fait$,terminé,réalisé,andamento,progresso,feito,concluíd,situação,\
    kemajuan,progres$,selesai,keadaan,进度,进展,進度,進展,状态,狀態,现状,完成,做了什么,捗,状況,状態,現状,完了,済み,진행,상태,현황,완료,finished,\
    delivered,implemented,landed,achiev,gemacht,implementiert,realizad,accompli,dikerjakan";
const DECIDED: &str = "\
    decision,decided,rationale,invariant,locked,why,decis,entscheidung,warum,begründung,porqué,por qué,décision,\
    choix,pourquoi,por que,keputusan,alasan,决策,决定,決策,決定,原因,理由,为什么,判断,方針,결정,이유,판단,design choice";
const BLOCKING: &str = "\
    blocker,blocked,blocking,obstacle,problem,issue,risk,limitation,gap,deferred,gotcha,constraint,bug,open$,\
    unresolved,hindernis,offen,risik,blockad,einschränkung,bloque,obstácul,riesgo,impediment,blocage,bloqu,\
    problèm,risque,risco,problema,hambatan,kendala,masalah,risiko,阻塞,阻碍,障碍,问题,問題,风险,風險,卡点,限制,ブロッカー,障害,課題,リスク,懸念,\
    制約,블로커,장애,문제,이슈,위험,막힌,제약,注意点,坑";
const FILES: &str = "\
    file,changes,modified,changed,touched,built,pointer,datei,geändert,änderung,Änderung,archivo,fichero,\
    modificad,cambio,fichier,modifié,modification,changement,arquivo,ficheiro,alterad,alteraç,alteraçõ,berkas,\
    diubah,perubahan,文件,修改,改动,变更,檔案,變更,ファイル,変更,修正,파일,변경,수정,code map,代码,artifact";
const AHEAD: &str = "\
    next,remain,todo,to do,to-do,first action,follow-up,follow up,deferred,nächst,Nächst,weiter,offene,verbleib,\
    zu tun,próxim,Próxim,siguiente,pendiente,por hacer,prochain,étape,Étape,suivant,reste à,à faire,seguinte,\
    pendente,restante,a fazer,selanjutnya,berikutnya,langkah,lanjut,下一,接下来,接下來,后续,後續,待办,待辦,剩余,计划,次の,次回,次に,残り,今後,\
    残作業,다음,남은,할 일,향후,후속,下次,ネクスト";
const LIMITS: &str = "\
    constraint,preference,rule,invariant,vorgabe,einschränkung,beschränkung,präferenz,vorlieben,regel,\
    restriccion,restricción,preferencia,limitacion,regla,contrainte,préférence,règle,restriç,preferência,regra,\
    batasan,preferensi,kendala,aturan,约束,限制,偏好,制約,好み,規則,ルール,제약,선호";
const CRITICAL: &str = "\
    context,critical,important,kontext,wichtig,kritisch,contexto,crítico,importante,contexte,critique,konteks,\
    penting,上下文,背景,关键,重要,コンテキスト,文脈,컨텍스트,맥락,배경,중요,background";

pub(super) const NEXT: Asked = Asked { about: "next steps", heading: "next steps", stems: AHEAD, may_be_none: false };
/// Other headings under which the next steps may stand; see [`super::sections::next_steps`].
pub(super) const STEPS: Asked = Asked {
    about: "next steps",
    heading: "next steps",
    stems: "task,subtask,plan,roadmap,backlog,action,start here,begin,immediate,priorit",
    may_be_none: false,
};
const DECISIONS: Asked = Asked { about: "key decisions", heading: "key decisions", stems: DECIDED, may_be_none: true };

/// The sections that `data/prompts/instruction.md` asks for.
pub(super) const OF_FILE: [Asked; 6] = [
    Asked { about: "what was being worked on", heading: "what i was working on", stems: GOAL, may_be_none: false },
    Asked { about: "current progress", heading: "current progress", stems: PROGRESS, may_be_none: false },
    DECISIONS,
    Asked { about: "blockers", heading: "blockers", stems: BLOCKING, may_be_none: true },
    Asked { about: "files modified", heading: "files modified", stems: FILES, may_be_none: true },
    NEXT,
];

/// The sections that `data/prompts/reply.md` asks for.
pub(super) const OF_REPLY: [Asked; 6] = [
    Asked { about: "the goal", heading: "goal", stems: GOAL, may_be_none: false },
    Asked {
        about: "constraints and preferences",
        heading: "constraints & preferences",
        stems: LIMITS,
        may_be_none: true,
    },
    Asked { about: "progress", heading: "progress", stems: PROGRESS, may_be_none: false },
    DECISIONS,
    Asked { about: "critical context", heading: "critical context", stems: CRITICAL, may_be_none: true },
    NEXT,
];

/// The sections that a document of this author must have. A salvaged document has no required sections, because it is
/// the end of a conversation.
pub(super) fn asked(author: Author) -> &'static [Asked] {
    match author {
        Author::AgentFile | Author::Provided => &OF_FILE,
        Author::AgentReply => &OF_REPLY,
        Author::Salvage => &[],
    }
}

/// Whether a word of the text begins with one of the stems, which are separated by commas. A stem with `$` after it
/// must be the whole word. A Chinese, Japanese or Korean stem may be anywhere in the text.
pub(super) fn has_stem(lower: &str, stems: &str) -> bool {
    stems.split(',').any(|stem| {
        let (word, is_whole) = stem.strip_suffix('$').map_or((stem, false), |word| (word, true));
        let has_blanks = word.chars().all(|c| c < '\u{2e80}');
        lower.match_indices(word).any(|(at, _)| {
            let is_start = !lower[..at].chars().next_back().is_some_and(char::is_alphanumeric);
            let is_end = !lower[at + word.len()..].chars().next().is_some_and(char::is_alphanumeric);
            !has_blanks || (is_start && (is_end || !is_whole))
        })
    })
}
